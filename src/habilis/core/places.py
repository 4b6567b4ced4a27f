"""Where Habilis keeps things on this machine. Only names; whoever uses them makes the folders."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """`HABILIS_CACHE`, or `habilis` in the user's cache folder."""
    if chosen := os.environ.get('HABILIS_CACHE'):
        return Path(chosen).expanduser()
    return Path(os.environ.get('XDG_CACHE_HOME') or '~/.cache').expanduser() / 'habilis'
