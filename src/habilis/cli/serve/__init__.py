"""`habilis serve`: services of this machine for people and programs."""
