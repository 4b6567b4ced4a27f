"""`habilis runs`: the runs that were kept, and going on with them."""
