"""The web: search and fetch, through the host. Needs `habilis[web]`."""
