"""`habilis map`: run many tasks."""
