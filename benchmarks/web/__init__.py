"""`python -m benchmarks web`: pages fetched and turned into text."""
