"""E2B's protocol over our own sandboxes, so that its SDK can use this service."""
