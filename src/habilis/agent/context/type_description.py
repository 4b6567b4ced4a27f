"""A type in words that a model understands: as Python writes it, with the fields of classes written out."""

import types
from collections.abc import Mapping
from enum import Enum, EnumType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints, is_typeddict

MAX_DEPTH = 3


def describe_type(kind: object) -> str:
    """Such as `list[str]` or `a dict {'name': str, 'age': int}`."""
    text = _described(kind, MAX_DEPTH)
    return f'a dict {text}' if text.startswith('{') else text


def _described(kind: object, depth: int) -> str:
    if kind is None or kind is type(None):
        return 'None'
    if kind is Any:
        return 'Any'
    if isinstance(kind, str):
        return kind
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return f'Literal[{", ".join(map(repr, arguments))}]'
    if origin is Annotated:
        return _described(arguments[0], depth)
    if origin in (Union, types.UnionType):
        return ' | '.join(_described(argument, depth) for argument in arguments)
    if origin is not None:
        inside = ', '.join('...' if argument is ... else _described(argument, depth) for argument in arguments)
        return f'{_name(origin)}[{inside}]'
    if isinstance(kind, EnumType):
        return f'Literal[{", ".join(repr(cast("Enum", member).value) for member in kind)}]'
    if depth and (fields := _fields(kind)):
        return f'{{{", ".join(f"{name!r}: {_described(field, depth - 1)}" for name, field in fields.items())}}}'
    return _name(kind)


def _fields(kind: object) -> Mapping[str, object]:
    """Of a dataclass, a pydantic model or a typed dict; none of anything else."""
    names: Any = getattr(kind, '__dataclass_fields__', None) or getattr(kind, 'model_fields', None)
    if not isinstance(kind, type) or not (names or is_typeddict(kind)):
        return {}
    try:
        hints = get_type_hints(kind)
    except (NameError, TypeError):  # a name that is only there for type checkers
        hints = dict(getattr(kind, '__annotations__', {}))
    return {name: hints.get(name, Any) for name in names or hints}


def _name(kind: object) -> str:
    return str(getattr(kind, '__name__', None) or str(kind).replace('typing.', ''))
