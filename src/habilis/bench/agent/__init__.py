"""`habilis bench agent`: what the agent adds to its model and its sandbox."""
