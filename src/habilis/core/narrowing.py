"""Types of values that are known only when they are there: parsed JSON, rows of a database, attributes.

`isinstance(value, list)` tells a type checker nothing about the items; these functions say that they are objects. Those
that are named for what they return raise `TypeError` for anything else.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from habilis.core.codec import Json

T = TypeVar('T')


def is_list(value: object) -> 'TypeIs[list[object]]':
    """Whether it is a list."""
    return isinstance(value, list)


def is_tuple(value: object) -> 'TypeIs[tuple[object, ...]]':
    """Whether it is a tuple."""
    return isinstance(value, tuple)


def is_dict(value: object) -> 'TypeIs[dict[object, object]]':
    """Whether it is a dict."""
    return isinstance(value, dict)


def is_mapping(value: object) -> 'TypeIs[Mapping[object, object]]':
    """Whether it is a mapping."""
    return isinstance(value, Mapping)


def is_several(value: object) -> 'TypeIs[list[object] | tuple[object, ...] | set[object] | frozenset[object]]':
    """Whether it is a collection of items that is read more than once, and not a text."""
    return isinstance(value, (list, tuple, set, frozenset))


def is_group(error: BaseException) -> 'TypeIs[BaseExceptionGroup[BaseException]]':
    """Whether the error is a group of errors."""
    return isinstance(error, BaseExceptionGroup)


def items_in(value: object) -> list[object]:
    """The items of a list; none of anything else."""
    return value if is_list(value) else []


def fields_in(value: object) -> dict[str, object]:
    """The entries of a dict whose keys are texts, as those of a JSON object; none of anything else."""
    return {key: item for key, item in value.items() if isinstance(key, str)} if is_dict(value) else {}


def expect(value: object, kind: type[T]) -> T:
    """The value, which must be of this type."""
    if not isinstance(value, kind):
        raise TypeError(_wrong(kind.__name__, value))
    return value


def optional(value: object, kind: type[T]) -> T | None:
    """The value, which must be of this type or None."""
    return None if value is None else expect(value, kind)


def number(value: object) -> float:
    """The value, which must be an integer or a float, as a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(_wrong('number', value))
    return float(value)


def list_of(kind: type[T], value: object) -> list[T]:
    """The list, whose items must be of this type."""
    return [expect(item, kind) for item in expect_list(value)]


def expect_list(value: object) -> list[object]:
    """The value, which must be a list."""
    if not is_list(value):
        raise TypeError(_wrong('list', value))
    return value


def json_object(value: 'Json') -> 'dict[str, Json]':
    """The value, which must be a JSON object."""
    if not isinstance(value, dict):
        raise TypeError(_wrong('object', value))
    return value


def _wrong(wanted: str, value: object) -> str:
    return f'expected {wanted}, not {type(value).__name__}'
