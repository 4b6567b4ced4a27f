"""Where Habilis keeps things on this machine. Only names; whoever uses them makes the folders."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """`HABILIS_CACHE`, or `habilis` in the user's cache folder."""
    if chosen := os.environ.get('HABILIS_CACHE'):
        return Path(chosen).expanduser()
    return Path(os.environ.get('XDG_CACHE_HOME') or '~/.cache').expanduser() / 'habilis'


def config_folder() -> Path:
    """`habilis` in the user's configuration folder."""
    return Path(os.environ.get('XDG_CONFIG_HOME') or '~/.config').expanduser() / 'habilis'


def data_folder() -> Path:
    """`HABILIS_DATA`, or `habilis` in the user's data folder: what must not be lost, such as the runs."""
    if chosen := os.environ.get('HABILIS_DATA'):
        return Path(chosen).expanduser()
    return Path(os.environ.get('XDG_DATA_HOME') or '~/.local/share').expanduser() / 'habilis'


def responses_folder() -> Path:
    """Where replies of models are kept, if the response cache is on."""
    return cache_folder() / 'responses'
