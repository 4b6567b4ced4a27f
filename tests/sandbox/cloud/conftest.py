"""The machines of the clouds are made of namespaces."""

import pytest

from tests.requirements import require_namespaces


@pytest.fixture(autouse=True, scope='session')
def _machines() -> None:  # pyright: ignore[reportUnusedFunction]
    require_namespaces()
