"""Refuses cells that define the name of a tool: models invent data that way. An assignment only hides the tool."""

import ast
import re
import sys
from collections.abc import Collection, Iterator
from typing import Optional

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_PATTERNS = (ast.MatchAs, ast.MatchStar) if sys.version_info >= (3, 10) else ()
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_NAMED = (*_DEFINITIONS, ast.ExceptHandler, *_PATTERNS)
_LINE_END = re.compile('\r\n|\r|\n')

Scope = Optional[set[str]]  # noqa: UP045 - for Python 3.9
"""The names that a function or class declares as global; None at module level, where every name is global."""

Binding = tuple[ast.AST, str, str]
"""The node, the bound name, and the name of what is imported (empty for everything but imports)."""


def mentions_tool(code: str, tools: Collection[str]) -> bool:
    """Whether the code can contain the name of a tool. Python normalizes identifiers that are not ASCII."""
    return not code.isascii() or any(name in code for name in tools)


def refuse_tool_names(
    tree: ast.Module, code: str, filename: str, tools: Collection[str], reserved: Collection[str] = ()
) -> None:
    """Raise a `SyntaxError` for the first place where the module defines a function or class with the name of a tool,
    or binds, rebinds or deletes a reserved name."""
    found = [
        binding
        for binding in _global_bindings(tree)
        if binding[1] in reserved or (binding[1] in tools and isinstance(binding[0], _DEFINITIONS))
    ]
    if found:
        raise _error(*min(found, key=_position), code, filename)


def _position(binding: Binding) -> tuple[int, int]:
    return getattr(binding[0], 'lineno', 0), getattr(binding[0], 'col_offset', 0)


def _global_bindings(tree: ast.Module) -> Iterator[Binding]:
    """What the module binds in its own namespace. Without recursion: trees may be deeper than the stack."""
    todo: list[tuple[ast.AST, Scope]] = [(tree, None)]
    while todo:
        node, scope = todo.pop()
        if isinstance(node, ast.Global) and scope is not None:
            scope.update(node.names)
        for name, imported in _names_bound_by(node):
            if scope is None or name in scope:
                yield node, name, imported
        # In the order of the source: a `global` statement comes before the names that it is about.
        todo += reversed(list(_children(node, scope)))


def _names_bound_by(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that this node alone binds in its scope."""
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            yield node.id, ''
    elif isinstance(node, ast.alias):
        imported = node.name.partition('.')[0]
        yield node.asname or imported, imported
    elif isinstance(node, _NAMED):
        if node.name is not None:
            yield node.name, ''
    elif sys.version_info >= (3, 10) and isinstance(node, ast.MatchMapping) and node.rest is not None:
        yield node.rest, ''


def _children(node: ast.AST, scope: Scope) -> Iterator[tuple[ast.AST, Scope]]:
    """The nodes below, each with the scope that it is in."""
    inside: Scope = set() if isinstance(node, (*_DEFINITIONS, ast.Lambda)) else scope
    for field, value in ast.iter_fields(node):
        if _is_local(node, field):
            continue
        for child in value if isinstance(value, list) else [value]:  # pyright: ignore[reportUnknownVariableType]
            if isinstance(child, ast.alias) and sys.version_info < (3, 10):
                child.lineno, child.col_offset = node.lineno, node.col_offset
            if isinstance(child, ast.AST):
                yield child, inside if field == 'body' else scope


def _is_local(node: ast.AST, field: str) -> bool:
    """Whether a field holds names that are not bound outside of the node: loop variables of a comprehension, the
    target of an annotation without value, type parameters."""
    if field == 'target':
        return isinstance(node, ast.comprehension) or (isinstance(node, ast.AnnAssign) and node.value is None)
    return field == 'type_params'


def _error(node: ast.AST, name: str, imported: str, code: str, filename: str) -> SyntaxError:
    if imported == name:
        message = f'{name!r} is a tool and already defined: do not import it'
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
        message = f'cannot delete {name!r}: it is a tool'
    elif isinstance(node, _DEFINITIONS):
        message = f'{name!r} is a tool and already defined: leave this definition out, or choose another name'
    else:
        message = f'cannot assign to {name!r}: it is a tool; choose another name'
    line, column = _position((node, name, imported))
    text = _LINE_END.split(code)[line - 1]
    start = len(text.encode()[:column].decode())
    word = re.compile(rf'\b{re.escape(name)}\b').search(text, start)
    first, last = word.span() if word else (start, start + len(name))
    end = (line, last + 1) if sys.version_info >= (3, 10) else ()
    return SyntaxError(message, (filename, line, first + 1, text, *end))
