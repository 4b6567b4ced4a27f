"""`python -m benchmarks server`."""
