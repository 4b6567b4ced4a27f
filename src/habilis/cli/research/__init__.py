"""`habilis research`."""
