"""`habilis sessions`: list, show and delete conversations."""
