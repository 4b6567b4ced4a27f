"""The `process` backend: native Python in a process, isolated by Linux."""
