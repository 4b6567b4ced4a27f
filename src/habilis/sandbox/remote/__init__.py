"""The `remote` backend: guests on a server, which `habilis serve sandboxes` runs."""
