"""Rows wherever they are, in memory, in files or in blocks: checked, scaled, sampled and projected."""

from linkmix.data.blocks import Blocks

__all__ = ["Blocks"]
