"""`python -m benchmarks model`: the embedded model."""
