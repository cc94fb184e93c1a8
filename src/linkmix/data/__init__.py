"""Rows in memory, in files or in blocks: checking, scaling, sampling and projecting them."""

from linkmix.data.blocks import Blocks

__all__ = ["Blocks"]
