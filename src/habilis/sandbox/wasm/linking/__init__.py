"""Links the core modules of the built component into one."""
