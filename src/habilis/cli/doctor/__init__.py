"""`habilis doctor`: check the installation and test the sandbox."""
