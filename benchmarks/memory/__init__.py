"""`python -m benchmarks memory`: search and append in a large memory, and the chat."""
