"""Type hints of a tool as types, read from its source. Nothing of the source is executed on the host."""

import ast
from inspect import Parameter, Signature
from typing import Any, Literal, Union

from habilis.core.syntax import parse_expression

_PLAIN: dict[str, object] = {
    'int': int,
    'float': float,
    'str': str,
    'bool': bool,
    'bytes': bytes,
    'list': list,
    'dict': dict,
    'tuple': tuple,
    'set': set,
    'None': None,
    'Any': Any,
    'object': Any,
}
_GENERIC: dict[str, Any] = {
    'list': list,
    'List': list,
    'Sequence': list,
    'Iterable': list,
    'dict': dict,
    'Dict': dict,
    'Mapping': dict,
    'tuple': tuple,
    'Tuple': tuple,
    'set': set,
    'Set': set,
}


def read_parameters(function: ast.FunctionDef) -> Signature:
    """The signature of a function. Types that are not plain data, and defaults that are not literals, become `Any`."""
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    parameters = [
        _parameter(argument, Parameter.POSITIONAL_OR_KEYWORD, default)
        for argument, default in zip(positional, defaults, strict=True)
    ]
    if given.vararg is not None:
        parameters.append(_parameter(given.vararg, Parameter.VAR_POSITIONAL, None))
    parameters += [
        _parameter(argument, Parameter.KEYWORD_ONLY, default)
        for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    if given.kwarg is not None:
        parameters.append(_parameter(given.kwarg, Parameter.VAR_KEYWORD, None))
    return Signature(parameters, return_annotation=to_type(function.returns))


def _parameter(argument: ast.arg, kind: Any, default: ast.expr | None) -> Parameter:
    value = Parameter.empty if default is None else _literal(default)
    return Parameter(argument.arg, kind, default=value, annotation=to_type(argument.annotation))


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        return None


def to_type(node: ast.expr | None) -> object:
    """The type that a hint names; `Any` if it is not one of plain data."""
    match node:
        case ast.Constant(value=None):
            return None
        case ast.Constant(value=str() as text):
            try:
                return to_type(parse_expression(text).body)
            except SyntaxError:
                return Any
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return _PLAIN.get(name, Any)
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _union([to_type(left), to_type(right)])
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner):
            return _subscripted(name, inner.elts if isinstance(inner, ast.Tuple) else [inner])
        case _:
            return Any


def _subscripted(name: str, inner: list[ast.expr]) -> object:
    if name == 'Literal':
        values = tuple(_literal(one) for one in inner)
        return Literal[values]  # pyright: ignore[reportInvalidTypeArguments]
    if name == 'Optional':
        return _union([to_type(inner[0]), None])
    if name == 'Union':
        return _union([to_type(one) for one in inner])
    if name not in _GENERIC or not _has_right_count(_GENERIC[name], inner):
        return Any
    types = [... if isinstance(one, ast.Constant) and one.value is ... else to_type(one) for one in inner]
    return _GENERIC[name][tuple(types)] if types else _GENERIC[name]


def _has_right_count(generic: object, inner: list[ast.expr]) -> bool:
    if generic is tuple:
        dots = [index for index, one in enumerate(inner) if isinstance(one, ast.Constant) and one.value is ...]
        return bool(inner) and (not dots or (dots == [1] and len(inner) == 2))
    return len(inner) == (2 if generic is dict else 1)


def _union(types: list[object]) -> object:
    if Any in types:
        return Any
    return Union[tuple(types)]  # noqa: UP007 # pyright: ignore[reportInvalidTypeArguments]
