"""Whether links can be met by any labelling with so many classes, and which of them clash."""
