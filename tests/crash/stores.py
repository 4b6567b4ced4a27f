"""The stores that outlive a process."""

from pathlib import Path

import pytest

from tests.journal.server_faults import new_name

STORES = ('sqlite', 'files', 'postgres', 'redis')


def address(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """Of a store that no other test has."""
    if kind == 'postgres':
        return f'{request.getfixturevalue("postgres_url")}&schema={new_name()}'
    if kind == 'redis':
        return f'{request.getfixturevalue("redis_url")}?prefix={new_name()}:'
    return f'sqlite:{folder}/runs.db' if kind == 'sqlite' else f'files:{folder}/runs'
