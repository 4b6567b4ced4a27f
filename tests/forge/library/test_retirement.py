"""Which tools are proposed for retirement, and how calls are counted."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from habilis.core.errors import ForgeError
from habilis.forge.library.library import Library
from habilis.forge.library.retirement import proposals
from tests.forge.samples import double, fourfold

LATER = datetime.now(UTC) + timedelta(days=100)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    made = Library(tmp_path / 'library')
    made.add(double())
    return made


def proposed(library: Library, now: datetime | None = None) -> dict[str, str]:
    return {one.name: one.reason for one in proposals(library, now=now)}


def test_a_new_tool_is_not_proposed(library: Library) -> None:
    assert proposed(library) == {}


def test_a_tool_without_calls_is_proposed(library: Library) -> None:
    assert proposed(library, LATER) == {'double': 'not called for 90 days'}


def test_a_tool_that_others_use_is_not_unused(library: Library) -> None:
    library.add(fourfold())
    assert proposed(library, LATER) == {'fourfold': 'not called for 90 days'}


def test_a_tool_that_fails_is_proposed(library: Library) -> None:
    for ok in (True, True, False, False, False):
        library.usage.record('double', 1, ok=ok, seconds=0.1)
    assert proposed(library) == {'double': '3 of 5 calls failed'}
    library.add(double(factor=3), replaces=True)  # the failures were those of version 1
    assert proposed(library) == {}


def test_a_damaged_tool_does_not_matter(library: Library) -> None:
    library.add(double('second'))
    (library.folder / 'second' / 'v1' / 'tool.json').write_text('{')
    assert proposed(library, LATER) == {'double': 'not called for 90 days'}


def test_calls_are_counted_per_version(library: Library) -> None:
    library.usage.record('double', 1, ok=True, seconds=0.5)
    library.usage.record('double', 1, ok=False, seconds=1.5)
    library.usage.record('double', 2, ok=True, seconds=1.0)
    counts = [(one.version, one.calls, one.failed, one.seconds) for one in library.usage.read()]
    assert counts == [(1, 2, 1, 2.0), (2, 1, 0, 1.0)]
    assert library.usage.successes(['double', 'other']) == {'double': 2}


def test_a_damaged_log_is_an_error_to_read_and_none_to_write(library: Library) -> None:
    (library.folder / '.usage.db').write_bytes(b'not a database' * 100)
    with pytest.raises(ForgeError, match='delete it to count from zero'):
        library.usage.read()
    library.usage.record('double', 1, ok=True, seconds=1)
    assert library.usage.successes(['double']) == {}
    assert [one.name for one in library.search('twice')] == ['double']
