"""What all other packages build on: array types, errors, checks of parameters, and files."""
