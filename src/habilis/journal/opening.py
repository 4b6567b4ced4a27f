"""`open_store`: a store by the text that settings have for it. Only what it needs is imported."""

import os
from pathlib import Path

from habilis.core.errors import SettingsError
from habilis.core.folders import data_folder
from habilis.journal.contract import Durability, Store
from habilis.journal.memory import MemoryStore
from habilis.journal.servers import durability_of

OFF = 'off'
"""In the settings: nothing is kept."""

_SQLITE_ENDINGS = ('.db', '.sqlite', '.sqlite3')
_POSSIBLE = (
    'off (nothing is kept), sqlite:FILE or a path that ends with .db, files:FOLDER or a path that ends with /, '
    'postgresql://user@host/database, redis://host:6379/0, rediss://… or unix:///path/of/redis.sock; '
    '?durability=full after the first two and PostgreSQL'
)


def open_store(where: str | Path | Store | None = None) -> Store:
    """The store of a text such as `sqlite:runs.db`; a store is given back as it is. Nothing is connected or made yet.

    `None` is the default: `runs.db` in the user's data folder. Raises `SettingsError`, which says what is possible, and
    `PackageMissing` if the store needs an SDK that is not installed.
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
        return _on_a_server(scheme, text)
    return _on_disk(text, is_path=isinstance(where, Path))


def _on_a_server(scheme: str, url: str) -> Store:
    if scheme in {'postgres', 'postgresql'}:
        from habilis.journal.postgres import PostgresStore

        return PostgresStore(url)
    if scheme in {'redis', 'rediss', 'unix'}:
        from habilis.journal.redis import RedisStore

        return RedisStore(url)
    msg = f'there is no store for {scheme[:20]}:// addresses. The journal can be: {_POSSIBLE}'
    raise SettingsError(msg)


def _on_disk(text: str, *, is_path: bool) -> Store:
    """Of `sqlite:FILE`, `files:FOLDER`, or the path of one of them."""
    if is_path:
        kind, path, durability = '', text, None
    else:
        kind, path = _kind(text)
        path, durability = _options(path)
    if not path or '\0' in path:
        raise _impossible(text)
    try:
        place = Path(path).expanduser()
    except RuntimeError:  # `~somebody`, whom this machine does not know
        raise _impossible(text) from None
    is_folder = os.path.isdir(place)
    if kind == 'sqlite' or (not kind and path.endswith(_SQLITE_ENDINGS) and not is_folder):
        return _sqlite(place, durability)
    if kind == 'files' or (not kind and (path.endswith(('/', os.sep)) or is_folder)):
        from habilis.journal.files import FileStore

        return FileStore(place) if durability is None else FileStore(place, durability=durability)
    raise _impossible(text)


def _kind(text: str) -> tuple[str, str]:
    kind, colon, path = text.partition(':')
    return (kind, path) if colon and kind in {'sqlite', 'files'} else ('', text)


def _options(path: str) -> tuple[str, Durability | None]:
    """The path, and the durability after it. A `?` that begins anything else is part of the path."""
    path, mark, option = path.partition('?durability=')
    return path, durability_of(option) if mark else None


def _sqlite(path: Path, durability: Durability | None) -> Store:
    from habilis.journal.sqlite import SqliteStore

    return SqliteStore(path) if durability is None else SqliteStore(path, durability=durability)


def _impossible(text: str) -> SettingsError:
    shown = 'this text' if '@' in text else repr(text[:200])  # there may be a password before an @
    return SettingsError(f'{shown} is no place for the journal. It can be: {_POSSIBLE}')
