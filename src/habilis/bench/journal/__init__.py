"""`habilis bench journal`."""
