"""`habilis bench`: the numbers Habilis must hold, beside the peers that are installed."""
