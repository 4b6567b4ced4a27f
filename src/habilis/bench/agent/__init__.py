"""`habilis bench agent`."""
