"""`habilis run`: a task for the agent."""
