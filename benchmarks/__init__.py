"""What the package can do on real data, and how fast. Each file is a script: ``python -m benchmarks.flipped_links``."""
