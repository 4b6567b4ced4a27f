"""`python -m benchmarks forge`."""
