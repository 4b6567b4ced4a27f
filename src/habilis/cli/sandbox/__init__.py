"""`habilis sandbox`: run Python in a sandbox, without an agent."""
