"""A memory in each kind of database: the same tests are for all of them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from uuid import uuid4

import pytest

from habilis.memory import Memory
from tests.journal import servers

postgres_url = servers.postgres_url

Open = Callable[..., Memory]


@pytest.fixture(params=['sqlite', 'postgres'])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place for a memory that is empty."""
    if request.param == 'sqlite':
        return str(tmp_path / 'memory.db')
    return f'{request.getfixturevalue("postgres_url")}&schema=test_{uuid4().hex[:12]}'


@pytest.fixture
async def open_memory(where: str) -> AsyncIterator[Open]:
    """Opens memories at the same place; closes them in the end."""
    opened: list[Memory] = []

    def make(user: str = 'ann', **options: object) -> Memory:
        opened.append(Memory(where, user=user, **options))  # pyright: ignore[reportArgumentType]
        return opened[-1]

    yield make
    await asyncio.gather(*(one.close() for one in opened))


@pytest.fixture
def memory(open_memory: Open) -> Memory:
    return open_memory()
