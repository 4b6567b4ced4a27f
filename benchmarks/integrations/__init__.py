"""`python -m benchmarks integrations`."""
