"""Answers to questions about pairs of points, from people, in a browser."""
