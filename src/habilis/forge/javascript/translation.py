"""Translates a specification and its tests from Python to JavaScript.

A build writes both in Python, whatever language the tool is to be in: examples of the user are Python, and so is what
calls the tool. Tests that have no plain counterpart are left out.
"""

import ast
import json
import re
from collections.abc import Mapping
from inspect import Parameter, Signature
from typing import cast

from habilis.core.errors import ForgeError
from habilis.core.syntax import parse_expression, parse_module
from habilis.forge.annotations import read_parameters
from habilis.forge.javascript.definition import has_function, with_documentation
from habilis.forge.source import read_source

_EXACT = 2**53
_TYPES = {'str': 'string', 'int': 'integer', 'float': 'number', 'bool': 'boolean', 'list': 'Array', 'dict': 'Object'}
_RESERVED = frozenset(
    'arguments await break case catch class const continue debugger default delete do else enum eval export extends'
    ' false finally for function if implements import in instanceof interface let new null package private protected'
    ' public return static super switch this throw true try typeof undefined var void while with yield assert'.split()
)
_ORDER: dict[type[ast.cmpop], str] = {ast.Lt: '<', ast.LtE: '<=', ast.Gt: '>', ast.GtE: '>='}
_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: '+', ast.Sub: '-', ast.Mult: '*', ast.Div: '/'}


class _Untranslatable(ForgeError):
    """Something of Python that has no plain counterpart."""


def javascript_stub(stub: str) -> str:
    """The function without a body, with the JSDoc block that describes it. Raises `ForgeError` for other than JSON."""
    function = _function(stub)
    signature = read_parameters(function)
    if any(one.kind in (Parameter.VAR_KEYWORD, Parameter.KEYWORD_ONLY) for one in signature.parameters.values()):
        msg = 'JavaScript has no parameters by keyword; use positional ones'
        raise ForgeError(msg)
    if words := _RESERVED & {function.name, *signature.parameters}:
        msg = f'{min(words)} is a word of JavaScript; choose another name'
        raise ForgeError(msg)
    hints = {one.arg: one.annotation for one in (*function.args.posonlyargs, *function.args.args)}
    rest = function.args.vararg
    if rest is not None:
        hints[rest.arg] = rest.annotation
    lines = (ast.get_docstring(function) or '').replace('*/', '* /').splitlines()
    for name, hint in hints.items():
        is_optional = signature.parameters[name].default is not Parameter.empty
        dots = '...' if rest is not None and name == rest.arg else ''
        lines.append(f'@param {{{dots}{_jsdoc_type(hint)}}} {f"[{name}]" if is_optional else name}')
    lines.append(f'@returns {{{_jsdoc_type(function.returns)}}}')
    block = '\n'.join(f' * {line}'.rstrip() for line in lines)
    parameters = ', '.join(map(_parameter, signature.parameters.values()))
    return f'/**\n{block}\n */\nexport function {function.name}({parameters}) {{\n}}'


def javascript_code(code: str, stub: str) -> str:
    """Code of a model as that of a tool: exported, with the JSDoc block of the specification. Raises `ForgeError`."""
    name = _function(stub).name
    if not has_function(name, code):
        code = re.sub(rf'^(?=function\s+{name}\s*\()', 'export ', code, flags=re.MULTILINE)
    block = javascript_stub(stub).partition('export function')[0]
    code = with_documentation(name, code, block)
    read_source(name, code, 'javascript')
    return code


def javascript_tests(stub: str, tests: Mapping[str, str]) -> dict[str, str]:
    """The tests of Python, by name, as functions of JavaScript; without those that cannot be translated."""
    function = _function(stub)
    signature = read_parameters(function)
    found: dict[str, str] = {}
    for name, source in tests.items():
        writer = _Writer(function.name, signature)
        try:
            lines = [writer.statement(one) for one in _function(source).body]
        except (_Untranslatable, RecursionError):
            continue
        found[name] = '\n'.join([f'function {name}() {{', *(f'  {line}' for line in lines if line), '}'])
    return found


def javascript_module(stub: str, tests: Mapping[str, str]) -> str:
    """The module of these tests of Python."""
    name = _function(stub).name
    return '\n\n'.join([f"import {{ {name} }} from './tool.js';", *javascript_tests(stub, tests).values()]) + '\n'


def _function(source: str) -> ast.FunctionDef:
    return next(one for one in parse_module(source).body if isinstance(one, ast.FunctionDef))


def _parameter(given: Parameter) -> str:
    if given.kind == Parameter.VAR_POSITIONAL:
        return f'...{given.name}'
    return given.name if given.default is Parameter.empty else f'{given.name} = {_json(given.default)}'


def _jsdoc_type(hint: ast.expr | None) -> str:
    match hint:
        case ast.Constant(value=None):
            return 'null'
        case ast.Name(id=name) if name in _TYPES:
            return _TYPES[name]
        case ast.Name(id='Any' | 'object'):
            return '*'
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return f'{_jsdoc_type(left)}|{_jsdoc_type(right)}'
        case ast.Subscript(value=ast.Name(id='list'), slice=item):
            return f'Array<{_jsdoc_type(item)}>'
        case ast.Subscript(value=ast.Name(id='dict'), slice=ast.Tuple(elts=[ast.Name(id='str'), item])):
            return f'Object<string, {_jsdoc_type(item)}>'
        case _:
            shown = 'nothing' if hint is None else ast.unparse(hint)
            msg = f'{shown} has no counterpart in JavaScript; use str, int, float, bool, list, dict[str, …] or None'
            raise ForgeError(msg)


def _json(value: object) -> str:
    """A literal of JavaScript."""
    match value:
        case bool() | None | str():
            return json.dumps(value)
        case int() if abs(value) <= _EXACT:
            return str(value)
        case float() if value - value == 0:
            return repr(value)
        case list() | dict():
            source = repr(cast('object', value))
            return _Writer('', Signature()).expression(parse_expression(source).body)
        case _:
            msg = f'{str(value)[:40]} has no counterpart in JavaScript'
            raise _Untranslatable(msg)


class _Writer:
    """Writes the statements of one test of a function."""

    def __init__(self, name: str, signature: Signature) -> None:
        self._name = name
        self._signature = signature
        self._variables = set[str]()

    def statement(self, node: ast.stmt) -> str:
        """A line of JavaScript; empty for one that does nothing."""
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return ''
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                line = f'var ${name} = {self.expression(value)};'
                self._variables.add(name)
                return line
            case ast.Assert(test=test):
                return self._check(test)
            case _:
                raise _Untranslatable(type(node).__name__)

    def _check(self, test: ast.expr) -> str:
        match test:
            case ast.Compare(left=value, ops=[ast.Eq() | ast.Is()], comparators=[ast.Constant(value=None)]):
                return f'assert({self.expression(value)} == null);'  # a function that returns nothing, too
            case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
                return f'assert.deepStrictEqual({self.expression(left)}, {self.expression(right)});'
            case ast.Compare(left=left, ops=[ast.NotEq() | ast.IsNot()], comparators=[right]):
                return f'assert.notDeepStrictEqual({self.expression(left)}, {self.expression(right)});'
            case ast.Compare(ops=[operator]) if type(operator) in _ORDER:
                return f'assert({self.expression(test)});'
            case ast.UnaryOp(op=ast.Not(), operand=ast.Call() | ast.Name() as value):
                return f'assert.equal({self.expression(value)}, false);'
            case ast.Call() | ast.Name():
                return f'assert.equal({self.expression(test)}, true);'
            case _:
                raise _Untranslatable(type(test).__name__)

    def expression(self, node: ast.expr) -> str:
        """The same value in JavaScript."""
        match node:
            case ast.Constant(value=str() | int() | float() | None as value):
                return _json(value)
            case ast.Name(id=name) if name in self._variables:
                return f'${name}'  # no word of the language, and no name of the module
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return f'[{", ".join(map(self.expression, items))}]'
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                return f'{{ {", ".join(f"{self._key(key)}: {self.expression(value)}" for key, value in pairs)} }}'
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return f'-{_json(value)}'
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _ARITHMETIC:
                return f'({self._number(left)} {_ARITHMETIC[type(operator)]} {self._number(right)})'
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _ORDER:
                return f'{self._number(left)} {_ORDER[type(operator)]} {self._number(right)}'
            case ast.Call():
                return self._call(node)
            case _:
                raise _Untranslatable(type(node).__name__)

    def _number(self, node: ast.expr) -> str:
        """An operand: operators mean the same for numbers and texts, and something else for lists."""
        if isinstance(node, ast.List | ast.Tuple | ast.Dict):
            raise _Untranslatable(type(node).__name__)
        return self.expression(node)

    def _key(self, node: ast.expr | None) -> str:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value != '__proto__':
            return json.dumps(node.value)
        msg = 'a key that is not text'
        raise _Untranslatable(msg)

    def _call(self, node: ast.Call) -> str:
        match node:
            case ast.Call(func=ast.Name(id='abs'), args=[value], keywords=[]):
                return f'Math.abs({self._number(value)})'
            case ast.Call(func=ast.Name(id=self._name)):
                return f'{self._name}({", ".join(self._arguments(node))})'
            case _:
                raise _Untranslatable(ast.unparse(node.func))

    def _arguments(self, node: ast.Call) -> list[str]:
        """The arguments in order: JavaScript has no keywords."""
        if any(isinstance(one, ast.Starred) for one in node.args) or any(one.arg is None for one in node.keywords):
            msg = 'arguments that are unpacked'
            raise _Untranslatable(msg)
        try:
            bound = self._signature.bind(*node.args, **{one.arg: one.value for one in node.keywords if one.arg})
        except TypeError as error:
            raise _Untranslatable(str(error)) from None
        given: list[str] = []
        for parameter in self._signature.parameters.values():
            value: object = bound.arguments.get(parameter.name, Parameter.empty)
            if isinstance(value, tuple):
                given += map(self.expression, cast('tuple[ast.expr, ...]', value))
            else:
                given.append(self.expression(value) if isinstance(value, ast.expr) else 'undefined')
        while given and given[-1] == 'undefined':
            given.pop()
        return given
