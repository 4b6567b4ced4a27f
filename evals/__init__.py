"""Forty small tasks with exact answers, and how to have an agent solve them. See README.md."""
