"""Every store that needs no server does what the contract says."""

from pathlib import Path
from typing import ClassVar

from habilis.journal.conformance import StoreConformance
from habilis.journal.contract import Store
from habilis.journal.files import FileStore
from habilis.journal.memory import MemoryStore
from habilis.journal.sqlite import SqliteStore


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
