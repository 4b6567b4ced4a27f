"""What the user has said about sharing a folder with the code: kept in the data folder, never in the project."""

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Literal, get_args

from typing_extensions import TypeIs

from habilis.core.folders import data_folder
from habilis.core.narrowing import is_mapping

Share = Literal['read', 'write', 'no']


def is_share(text: object) -> TypeIs[Share]:
    """Whether this is a way to share a folder."""
    return text in get_args(Share)


def remembered_share(folder: str | Path) -> Share | None:
    """What the user has said about a folder; None if nothing."""
    found = _read().get(_key(folder))
    return found if is_share(found) else None


def remember_share(folder: str | Path, share: Share | None) -> None:
    """Remember it; None forgets it. A data folder that cannot be written remembers nothing."""
    shares = {**_read(), _key(folder): share}
    kept = {name: value for name, value in shares.items() if value is not None}
    with contextlib.suppress(OSError):
        path = _file()
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile('w', dir=path.parent, encoding='utf-8', delete=False) as file:
            json.dump(kept, file, indent=1)
        os.replace(file.name, path)


def is_wide(folder: str | Path) -> bool:
    """Whether a folder has all of the user's files: their home folder, or one above it."""
    return Path.home().resolve().is_relative_to(Path(folder).resolve())


def _file() -> Path:
    return data_folder() / 'shared_folders.json'


def _key(folder: str | Path) -> str:
    return os.path.realpath(folder)


def _read() -> dict[str, object]:
    try:
        found: object = json.loads(_file().read_text(encoding='utf-8'))
    except (OSError, ValueError):  # nothing remembered yet, or damaged: the next chat asks again
        return {}
    return {str(name): value for name, value in found.items()} if is_mapping(found) else {}
