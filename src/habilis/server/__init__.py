"""Services over HTTP: the sandbox service."""
