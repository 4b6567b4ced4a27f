"""`habilis demo`: small tasks that show what the agent does, and check themselves."""
