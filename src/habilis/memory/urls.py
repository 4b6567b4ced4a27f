"""Open the database of a memory by its path or URL."""

import os
from pathlib import Path

from habilis.core.errors import SettingsError
from habilis.core.folders import data_folder
from habilis.memory.database import Database


def open_database(where: str | Path | None) -> Database:
    """The database at a path or a `postgresql://` URL; `None` is `memory.db` in the data folder. Connects on first use.

    Raises `SettingsError`.
    """
    from habilis.memory.sqlite import SqliteDatabase

    if where is None:
        return SqliteDatabase(data_folder() / 'memory.db')
    text = os.fspath(where)
    if isinstance(where, str) and '://' in text:
        from habilis.memory.postgres import PostgresDatabase

        return PostgresDatabase(text)
    text = text.removeprefix('sqlite:') if isinstance(where, str) else text
    if not text.strip() or '\0' in text or text.endswith('/'):
        msg = f'{text[:200]!r} is not a place for the memory: give a file, or postgresql://user@host/database'
        raise SettingsError(msg)
    return SqliteDatabase(Path(text).expanduser())
