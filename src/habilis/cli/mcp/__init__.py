"""`habilis mcp`."""
