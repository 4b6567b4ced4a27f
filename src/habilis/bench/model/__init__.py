"""`habilis bench model`: the embedded model."""
