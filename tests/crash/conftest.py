"""Runs to be killed, in each kind of store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.killing import Forks, House
from tests.crash.stores import address
from tests.journal.servers import postgres_url, redis_url

__all__ = ['forks', 'house', 'postgres_url', 'redis_url']


@pytest.fixture(scope='session')
def forks() -> Iterator[Forks]:
    """Makes processes."""
    made = Forks()
    yield made
    made.close()


@pytest.fixture
def house(request: pytest.FixtureRequest, forks: Forks, tmp_path: Path) -> House:
    """With a store of the kind that the test names, by `indirect`; otherwise SQLite."""
    return House(forks, address(getattr(request, 'param', 'sqlite'), tmp_path, request), tmp_path)
