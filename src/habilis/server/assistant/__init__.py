"""The assistant over HTTP: its conversations and runs, for a page and for other programs."""
