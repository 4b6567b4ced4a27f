"""What the user has said about sharing a folder with the code: kept in the data folder, never in the project."""

import os
from pathlib import Path
from typing import Literal, get_args

from typing_extensions import TypeIs

from habilis.core.data_files import read_data, write_data

_FILE = 'shared_folders.json'

Share = Literal['read', 'write', 'no']


def is_share(text: object) -> TypeIs[Share]:
    """Whether this is a way to share a folder."""
    return text in get_args(Share)


def remembered_share(folder: str | Path) -> Share | None:
    """What the user has said about a folder; None if nothing."""
    found = read_data(_FILE).get(_key(folder))
    return found if is_share(found) else None


def remember_share(folder: str | Path, share: Share | None) -> None:
    """Remember it; None forgets it. A data folder that cannot be written remembers nothing."""
    shares = {**read_data(_FILE), _key(folder): share}
    write_data(_FILE, {name: value for name, value in shares.items() if value is not None})


def is_wide(folder: str | Path) -> bool:
    """Whether a folder has all of the user's files: their home folder, or one above it."""
    return Path.home().resolve().is_relative_to(Path(folder).resolve())


def _key(folder: str | Path) -> str:
    return os.path.realpath(folder)
