"""Folders of Habilis on this machine. The functions return paths only; callers create the folders."""

import os
from pathlib import Path

import platformdirs

_APPLICATION = 'habilis'


def cache_folder() -> Path:
    """`HABILIS_CACHE`, or `habilis` in the user's cache folder."""
    return _chosen('HABILIS_CACHE') or platformdirs.user_cache_path(_APPLICATION, appauthor=False).expanduser()


def config_folder() -> Path:
    """`habilis` in the user's configuration folder."""
    return platformdirs.user_config_path(_APPLICATION, appauthor=False).expanduser()


def data_folder() -> Path:
    """`HABILIS_DATA`, or `habilis` in the user's data folder. Holds what must not be lost, such as the runs."""
    return _chosen('HABILIS_DATA') or own_data_folder()


def own_data_folder() -> Path:
    """`habilis` in the user's data folder, which nothing else uses."""
    return platformdirs.user_data_path(_APPLICATION, appauthor=False).expanduser()


def real_path(path: str | os.PathLike[str]) -> Path:
    """The path without `~` and links, as far as they can be read. Whether it can be used, others say."""
    expanded = os.path.expanduser(path)
    try:
        return Path(os.path.realpath(expanded))
    except OSError:
        return Path(os.path.abspath(expanded))


def responses_folder() -> Path:
    """Folder of the response cache."""
    return cache_folder() / 'responses'


def _chosen(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value).expanduser() if value else None
