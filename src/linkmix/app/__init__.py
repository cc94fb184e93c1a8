"""What people use without writing Python: the command line, the labelling page and the report."""
