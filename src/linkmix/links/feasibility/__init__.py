"""Whether any labelling with a given number of classes meets all links, and if not, which links clash."""
