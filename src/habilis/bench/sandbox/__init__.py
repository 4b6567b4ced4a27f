"""`habilis bench sandbox`."""
