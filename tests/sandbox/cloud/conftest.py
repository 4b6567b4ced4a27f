"""The machines of the clouds are made of namespaces, and have several users, for which the host must be root."""

import os

import pytest

from tests.requirements import require_namespaces


@pytest.fixture(autouse=True, scope='session')
def _machines() -> None:  # pyright: ignore[reportUnusedFunction]
    require_namespaces()
    if os.getuid() != 0:
        pytest.skip('needs root')
