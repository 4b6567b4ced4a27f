"""`open_store`: a store by its URL or path, as in the settings. Only the modules that it needs are imported."""

import os
from pathlib import Path

from habilis.core.errors import SettingsError
from habilis.core.folders import data_folder
from habilis.journal.contract import Durability, Store
from habilis.journal.stores.memory import MemoryStore
from habilis.journal.stores.server_address import parse_durability

OFF = 'off'
"""The value of the setting that keeps no journal."""

_SQLITE_ENDINGS = ('.db', '.sqlite', '.sqlite3')
_VALID = (
    'off (no journal), sqlite:FILE or a path that ends with .db, files:FOLDER or a path that ends with /, '
    'postgresql://user@host/database, redis://host:6379/0, rediss://… or unix:///path/of/redis.sock; '
    'SQLite, files and PostgreSQL accept ?durability=full'
)


def open_store(where: str | Path | Store | None = None) -> Store:
    """The store at a URL such as `sqlite:runs.db`; a store is returned unchanged. It connects on first use.

    `None` is the default: `runs.db` in the user's data folder. Raises `SettingsError`, which lists the valid URLs, and
    `PackageMissing` if the store needs a package that is not installed.
    """
    if where is None:
        return _sqlite(data_folder() / 'runs.db', None)
    if isinstance(where, Store):
        return where
    text = os.fspath(where)
    if text in {OFF, 'memory:'}:
        return MemoryStore()
    scheme, separator, _ = text.partition('://')
    if separator and isinstance(where, str):
        return _server_store(scheme, text)
    return _disk_store(text, is_path=isinstance(where, Path))


def _server_store(scheme: str, url: str) -> Store:
    if scheme in {'postgres', 'postgresql'}:
        from habilis.journal.stores.postgres import PostgresStore

        return PostgresStore(url)
    if scheme in {'redis', 'rediss', 'unix'}:
        from habilis.journal.stores.redis import RedisStore

        return RedisStore(url)
    msg = f'no store supports {scheme[:20]}:// URLs. Valid: {_VALID}'
    raise SettingsError(msg)


def _disk_store(text: str, *, is_path: bool) -> Store:
    """The store at `sqlite:FILE`, `files:FOLDER`, or at a path."""
    if is_path:
        kind, path, durability = '', text, None
    else:
        kind, path = _kind(text)
        path, durability = _options(path)
    if not path or '\0' in path:
        raise _invalid(text)
    try:
        location = Path(path).expanduser()
    except RuntimeError:  # `~user`, with an unknown user
        raise _invalid(text) from None
    is_folder = os.path.isdir(location)
    if kind == 'sqlite' or (not kind and path.endswith(_SQLITE_ENDINGS) and not is_folder):
        return _sqlite(location, durability)
    if kind == 'files' or (not kind and (path.endswith(('/', os.sep)) or is_folder)):
        from habilis.journal.stores.files import FileStore

        return FileStore(location) if durability is None else FileStore(location, durability=durability)
    raise _invalid(text)


def _kind(text: str) -> tuple[str, str]:
    kind, colon, path = text.partition(':')
    return (kind, path) if colon and kind in {'sqlite', 'files'} else ('', text)


def _options(path: str) -> tuple[str, Durability | None]:
    """The path and the durability option after it. Any other `?` is part of the path."""
    path, mark, option = path.partition('?durability=')
    return path, parse_durability(option) if mark else None


def _sqlite(path: Path, durability: Durability | None) -> Store:
    from habilis.journal.stores.sqlite import SqliteStore

    return SqliteStore(path) if durability is None else SqliteStore(path, durability=durability)


def _invalid(text: str) -> SettingsError:
    shown = 'this text' if '@' in text else repr(text[:200])  # there may be a password before an @
    return SettingsError(f'{shown} is not a valid journal URL. Valid: {_VALID}')
