"""Sets of tasks with exact checks, and the sides that solve them. See README.md."""
