collect_ignore_glob = ["plot_*.py"]  # these run when they are imported; tests/test_examples.py runs them once
