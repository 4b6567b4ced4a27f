"""`habilis memory`: list, search, add, forget, export and import what is remembered."""
