"""`habilis run`: run a task."""
