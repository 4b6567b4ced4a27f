"""`habilis doctor`: what is here, what is missing, how to get it."""
