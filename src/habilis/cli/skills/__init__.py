"""`habilis skills`: list, show, add, check, make and export Agent Skills."""
