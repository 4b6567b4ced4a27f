"""Every store that needs no server does what the contract says."""

from pathlib import Path
from typing import ClassVar

from habilis.journal.contract import Store
from habilis.journal.stores.conformance import StoreConformance
from habilis.journal.stores.files import FileStore
from habilis.journal.stores.memory import MemoryStore
from habilis.journal.stores.sqlite import SqliteStore


class TestMemory(StoreConformance):
    durable = False
    _made: ClassVar[dict[Path, MemoryStore]] = {}

    async def connect(self, place: Path) -> Store:
        return self._made.setdefault(place, MemoryStore())

    async def clean(self, place: Path) -> None:
        self._made.pop(place, None)


class TestSqlite(StoreConformance):
    async def connect(self, place: Path) -> Store:
        return SqliteStore(place / 'journal.db')


class TestFiles(StoreConformance):
    async def connect(self, place: Path) -> Store:
        return FileStore(place / 'journal')
