"""`habilis chat`: a conversation in the terminal."""
