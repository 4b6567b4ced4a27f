"""`habilis demo`: run three small tasks and check their results."""
