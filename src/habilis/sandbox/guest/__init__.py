"""The kernel that runs inside the sandbox."""
