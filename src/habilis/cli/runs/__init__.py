"""`habilis runs`: list, inspect, resume, fork and export recorded runs."""
