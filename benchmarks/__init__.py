"""Quality on real data, and speed. Each file is a script: ``python -m benchmarks.flipped_links``."""
