"""Copies of arguments, for those who only look at a call: what they do to them reaches nobody else."""

import copy
from collections.abc import Mapping
from typing import cast

_ATOMS = frozenset({int, str, bool, float, bytes, type(None)})


def copied(arguments: Mapping[str, object]) -> dict[str, object]:
    """The same arguments, and nothing in them is shared."""
    return {name: value if type(value) in _ATOMS else _copy(value) for name, value in arguments.items()}


def _copy(value: object) -> object:
    try:
        return _inside(value)
    except Exception:  # an object of the host that cannot be copied, or a list that contains itself
        return value


def _inside(value: object) -> object:
    """As `deepcopy`, which takes several times as long for the lists and dicts that most arguments are."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is list:
        return [_inside(item) for item in cast('list[object]', value)]
    if kind is dict:
        return {key: _inside(item) for key, item in cast('dict[object, object]', value).items()}
    return copy.deepcopy(value)
