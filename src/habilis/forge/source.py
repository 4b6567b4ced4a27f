"""Reads the source of a tool: its function, signature and summary, and what it imports."""

import ast
from dataclasses import dataclass, replace

from habilis.core.errors import ForgeError, ToolDefinitionError
from habilis.core.syntax import parse_module
from habilis.forge.contract import LIBRARY_MODULE, TESTED_MODULE, Candidate, Language
from habilis.forge.javascript import definition as javascript
from habilis.tools.catalog import DESCRIBE, SEARCH
from habilis.tools.tool_names import check_name

HELPERS = frozenset({SEARCH, DESCRIBE, 'find_tools', 'call_tool', 'make_tool'})
"""Functions that runs have beside the tools of a library."""

MAX_NAME = 60
_TAKEN = HELPERS | {TESTED_MODULE, f'test_{TESTED_MODULE}', LIBRARY_MODULE, 'pytest'}


@dataclass(frozen=True, kw_only=True)
class ToolSource:
    """What is known of a tool from its code alone."""

    name: str
    signature: str
    """`percent_of(percentage: float, base: float) -> float`."""

    summary: str
    """First paragraph of the docstring, on one line."""

    documentation: str
    parameters: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    """Library tools that it imports."""


def read_source(name: str, code: str, language: Language = 'python') -> ToolSource:
    """Read the code of a tool. Raises `ForgeError` if it has no complete function of that name."""
    _check_name(name)
    if language == 'javascript':
        return replace(
            read_source(name, javascript.python_definition(name, code)), uses=javascript.imported_tools(code)
        )
    try:
        tree = parse_module(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        msg = f'the code of {name} is not Python: {error}'
        raise ForgeError(msg) from error
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    if len(found) != 1:
        msg = f'the code must define one function `def {name}(…)`, and defines {len(found)}'
        raise ForgeError(msg)
    [function] = found
    documentation = (ast.get_docstring(function) or '').strip()
    arguments = _arguments(function)
    missing = [argument.arg for argument in arguments if argument.annotation is None]
    if missing or function.returns is None:
        msg = f'{name} needs a type hint for {", ".join(missing) or "its result"}'
        raise ForgeError(msg)
    if not documentation:
        msg = f'{name} needs a docstring: its first line is what is searched for'
        raise ForgeError(msg)
    return ToolSource(
        name=name,
        signature=f'{name}({ast.unparse(function.args)}) -> {ast.unparse(function.returns)}',
        summary=' '.join(documentation.partition('\n\n')[0].split()),
        documentation=documentation,
        parameters=tuple(argument.arg for argument in arguments),
        uses=_imported(tree),
    )


def _check_name(name: str) -> None:
    """Raise `ToolDefinitionError` for a name that no tool of a library can have."""
    check_name(name)
    if name in _TAKEN:
        reason = 'it is taken'
    elif name.startswith('_') or not name.isascii():  # hidden, or perhaps not the letters that it looks like
        reason = 'it must begin with a letter and have only letters from a to z, digits and underscores'
    elif len(name) > MAX_NAME:
        reason = f'it has more than {MAX_NAME} characters'
    else:
        return
    msg = f'{name[:MAX_NAME]!r} cannot be the name of a tool: {reason}; choose another'
    raise ToolDefinitionError(msg)


def definition_of(candidate: Candidate) -> ast.FunctionDef:
    """The definition of the function; that of one in JavaScript has no body."""
    is_python = candidate.language == 'python'
    tree = parse_module(candidate.code if is_python else javascript.python_definition(candidate.name, candidate.code))
    found = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == candidate.name)
    if (function := next(found, None)) is None:
        msg = f'the code of the tool {candidate.name} defines no function of that name'
        raise ToolDefinitionError(msg)
    return function


def _arguments(function: ast.FunctionDef) -> list[ast.arg]:
    given = function.args
    more = [one for one in (given.vararg, given.kwarg) if one is not None]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *more]


def imported_tools(code: str) -> tuple[str, ...]:
    """Library tools that code imports."""
    return _imported(parse_module(code))


def _imported(tree: ast.AST) -> tuple[str, ...]:
    names = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == LIBRARY_MODULE and not node.level
        for alias in node.names
    ]
    return tuple(dict.fromkeys(names))
