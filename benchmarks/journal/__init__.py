"""`python -m benchmarks journal`."""
