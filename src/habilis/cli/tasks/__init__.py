"""`habilis tasks`: list, add, change and delete tasks."""
