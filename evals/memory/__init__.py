"""How well the memory finds what was said: long synthetic chats, and questions about them."""
