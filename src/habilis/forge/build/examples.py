"""Turns examples of the user into tests, which no stage may change: `assert f('ab') == 'ba'`, or without `assert`."""

import ast
import builtins
from collections.abc import Mapping, Sequence
from inspect import Signature
from typing import Any

from pydantic import TypeAdapter, ValidationError

from habilis.core.errors import ForgeError
from habilis.core.narrowing import is_several, is_tuple
from habilis.core.syntax import parse_expression, parse_module
from habilis.forge.annotations import read_parameters
from habilis.forge.contract import TESTED_MODULE

EXAMPLE_TEST = 'test_example_'
"""Start of the names of these tests."""

_NO_LITERAL = (ValueError, TypeError, SyntaxError, RecursionError, MemoryError)


def read_example(text: str) -> ast.expr:
    """The condition of an example. Raises `ForgeError` if it is not one."""
    try:
        body = parse_module(text.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        msg = f'not an example: {text.strip()[:200]!r}; write it as a condition, such as f(2) == 4'
        raise ForgeError(msg) from error
    match body:
        case [ast.Assert(test=test)]:
            return test
        case [ast.Expr(value=ast.Compare() | ast.Call() as test)]:
            return test
        case _:
            msg = f'not an example: {text.strip()[:200]!r}; write it as one condition, such as f(2) == 4'
            raise ForgeError(msg)


def called_name(examples: Sequence[str]) -> str:
    """The function that all examples call; empty if there is none, or more than one."""
    found = [
        {
            node.func.id
            for node in ast.walk(read_example(text))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not hasattr(builtins, node.func.id)
        }
        for text in examples
    ]
    common = set[str].intersection(*found) if found else set[str]()
    return common.pop() if len(common) == 1 else ''


def wanted_parameters(examples: Sequence[str], name: str) -> str:
    """The parameters that the examples call this function with, as far as they show them: `<name>: list, <name>: str`.

    Empty if they call it in different ways, or not at all."""
    calls = [call for text in examples for call in _calls(read_example(text), name) if not _is_unpacked(call)]
    shapes = {(len(call.args), *(one.arg for one in call.keywords)) for call in calls}
    return _parameters(calls[0]) if len(shapes) == 1 else ''


def _parameters(call: ast.Call) -> str:
    named = [('<name>', value) for value in call.args] + [(one.arg, one.value) for one in call.keywords]
    return ', '.join(f'{name}: {_type_name(value)}' for name, value in named)


def _type_name(value: ast.expr) -> str:
    try:
        kind = type(ast.literal_eval(value)).__name__
    except _NO_LITERAL:
        return '<type>'
    return {'int': '<int or float>', 'NoneType': '<type>'}.get(kind, kind)  # whole numbers may be chance


def example_tests(examples: Sequence[str]) -> str:
    """The examples as test functions."""
    return '\n\n\n'.join(_functions(examples).values()) + '\n'


def module_with_tests(name: str, tests: Mapping[str, str], examples: Sequence[str] = ()) -> str:
    """The module of these tests of a function, and of the user's examples, which no test replaces."""
    sources = {**tests, **_functions(examples)}
    return f'from {TESTED_MODULE} import {name}\n\n\n' + '\n\n\n'.join(sources.values()) + '\n'


def _functions(examples: Sequence[str]) -> dict[str, str]:
    conditions = {f'{EXAMPLE_TEST}{number}': read_example(text) for number, text in enumerate(examples, start=1)}
    return {name: f'def {name}() -> None:\n    assert {ast.unparse(test)}' for name, test in conditions.items()}


def fitted_signature(definition: str, examples: Sequence[str]) -> str:
    """The definition of a function with types that the examples fit: where its type hints contradict them, those of the
    examples. Raises `ForgeError` if the examples could not be calls of it."""
    function = parse_module(definition).body[0]
    assert isinstance(function, ast.FunctionDef)
    arguments, results = dict[str, list[object]](), list[object]()
    for condition in map(read_example, examples):
        for call in _calls(condition, function.name):
            for name, value in _bound(read_parameters(function), call).items():
                arguments.setdefault(name, []).extend(_literals(value))
        match condition:
            case ast.Compare(left=ast.Call(func=ast.Name(id=function.name)), ops=[ast.Eq()], comparators=[result]):
                results += _literals(result)
            case _:
                pass
    signature = read_parameters(function)
    for argument in [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]:
        if not _fits(known := arguments.get(argument.arg, []), signature.parameters[argument.arg].annotation):
            argument.annotation = hint_for(known)
    if not _fits(results, signature.return_annotation):
        function.returns = hint_for(results)
    return ast.unparse(function)


def _calls(condition: ast.expr, name: str) -> list[ast.Call]:
    """The calls of a function in a condition."""
    calls = (node for node in ast.walk(condition) if isinstance(node, ast.Call))
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == name]


def _is_unpacked(call: ast.Call) -> bool:
    return any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords)


def _bound(signature: Signature, call: ast.Call) -> dict[str, ast.expr]:
    """The arguments of a call by name. Raises `ForgeError` if it does not fit the signature."""
    if _is_unpacked(call):
        return {}
    try:
        bound = signature.bind(*call.args, **{one.arg: one.value for one in call.keywords if one.arg})
    except TypeError as error:
        msg = f'{ast.unparse(call)} must be a possible call: {error}; its parameters are ({_parameters(call)})'
        raise ForgeError(msg) from error
    return {name: value for name, value in bound.arguments.items() if isinstance(value, ast.expr)}


def _literals(value: ast.expr) -> list[object]:
    try:
        return [ast.literal_eval(value)]
    except _NO_LITERAL:
        return []


def _fits(values: Sequence[object], annotation: Any) -> bool:
    try:
        for value in values:
            TypeAdapter(annotation).validate_python(value)
    except ValidationError:
        return False
    return True


def hint_for(values: Sequence[object]) -> ast.expr:
    """A type hint that all values fit."""
    return parse_expression(' | '.join(dict.fromkeys(map(_type_of, values)))).body


def _type_of(value: object) -> str:
    inner = {*map(_type_of, value)} if is_several(value) and not is_tuple(value) else set[str]()
    name = 'None' if value is None else type(value).__name__
    return f'{name}[{inner.pop()}]' if len(inner) == 1 else name
