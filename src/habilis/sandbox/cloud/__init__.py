"""Sandboxes of cloud services: our guest, started through their SDKs."""
