"""What the user has said about a folder: how to share it, whose hooks to trust. Kept in the data folder."""

import os
from pathlib import Path
from typing import Literal, get_args

from typing_extensions import TypeIs

from habilis.core.data_files import read_data, write_data
from habilis.core.folders import data_folder, real_path

Share = Literal['read', 'write', 'no']
SHARES, HOOKS = 'shared_folders.json', 'trusted_hooks.json'


def is_share(text: object) -> TypeIs[Share]:
    """Whether this is a way to share a folder."""
    return text in get_args(Share)


def remembered_share(folder: str | Path) -> Share | None:
    """What the user has said about a folder; None if nothing."""
    found = read_data(SHARES).get(_key(folder))
    return found if is_share(found) else None


def remember_share(folder: str | Path, share: Share | None) -> None:
    """Remember it; None forgets it. A data folder that cannot be written remembers nothing."""
    _write(SHARES, folder, share)


def trusted_hooks(folder: str | Path) -> str:
    """The digest of the hooks of a folder that the user trusts; empty if none."""
    return str(read_data(HOOKS).get(_key(folder), ''))


def trust_hooks(folder: str | Path, digest: str) -> None:
    """Remember it, as `remember_share` does."""
    _write(HOOKS, folder, digest)


def is_wide(folder: str | Path) -> bool:
    """Whether a folder has all of the user's files: their home folder, or one above it."""
    return Path.home().resolve().is_relative_to(Path(folder).resolve())


def is_data_folder_in(folder: str | Path) -> bool:
    """Whether code that may write a folder could change what is remembered here."""
    return data_folder().resolve().is_relative_to(Path(folder).resolve())


def files_within(workspace: str | Path, folder: Path, pattern: str) -> list[Path]:
    """The files in a folder of a shared one. A link must not bring in something from a folder that is not shared."""
    shared = real_path(workspace)
    found = sorted(Path(workspace, folder).glob(pattern))
    return [file for file in found if file.is_file() and real_path(file).is_relative_to(shared)]


def _write(name: str, folder: str | Path, value: str | None) -> None:
    notes = {**read_data(name), _key(folder): value}
    write_data(name, {each: value for each, value in notes.items() if value is not None})


def _key(folder: str | Path) -> str:
    return os.path.realpath(folder)
