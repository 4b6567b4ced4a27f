"""`python -m benchmarks mcp`."""
