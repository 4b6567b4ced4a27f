"""`habilis bench forge`."""
