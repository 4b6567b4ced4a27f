"""`habilis bench memory`: search and append in a large memory, and the chat."""
