"""A pydantic that is newer than the tested ones is used if it is made strict, and refused if it is not."""

import pydantic
import pytest

from habilis.core.errors import ToolDefinitionError
from habilis.tools import Toolbox, pydantic_forms, strictness, tool


@pytest.fixture(autouse=True)
def newer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pydantic, 'VERSION', '2.999.0b1')
    pydantic_forms.check_pydantic.cache_clear()


def double(number: int) -> int:
    return 2 * number


async def test_a_newer_pydantic_that_is_made_strict_is_used() -> None:
    assert await tool(double).invoke([4]) == 8


def _unchanged(*given: object) -> object:
    """A rule that does nothing."""
    return given[-1]


@pytest.mark.parametrize(
    ('name', 'other'),
    [
        ('_STRICT', frozenset[str]()),
        ('_TIMES', dict[str, str]()),
        ('_forbid_extras', _unchanged),
        ('_instance', _unchanged),
        ('_before', _unchanged),
        ('_HOLD_SCHEMAS', frozenset[str]()),
    ],
)
def test_a_newer_pydantic_that_would_accept_wrong_values_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, other: object
) -> None:
    monkeypatch.setattr(strictness, name, other)
    with pytest.raises(ToolDefinitionError, match=r"2.999.0b1 would accept wrong .*: pip install 'pydantic<2.15'"):
        Toolbox([tool(double)])
