"""`python -m benchmarks agent`."""
