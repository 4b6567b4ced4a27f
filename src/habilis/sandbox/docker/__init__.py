"""The `docker` backend: CPython of any image, in a container."""
