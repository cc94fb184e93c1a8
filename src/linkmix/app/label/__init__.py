"""The browser tool behind ``linkmix label``: people answer questions about pairs of points."""
