"""The `habilis` command."""
