"""What every room stands on: array types, errors, checks of parameters, files."""
