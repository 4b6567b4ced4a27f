"""`python -m benchmarks sandbox`."""
