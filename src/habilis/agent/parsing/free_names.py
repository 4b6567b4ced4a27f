"""Names that code uses and does not define."""

import ast
import builtins
from collections.abc import Iterator

from habilis.agent.parsing.syntax import statements

_BUILTIN = frozenset(dir(builtins))


def free_names(code: str) -> set[str]:
    """The names that the code uses and does not define anywhere."""
    nodes = [node for statement in statements(code) or () for node in ast.walk(statement)]
    used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return used - _BUILTIN - {*_bound_names(nodes)}


def _bound_names(nodes: list[ast.AST]) -> Iterator[str]:
    """Every name that the code defines, anywhere."""
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((alias.asname or alias.name).partition('.')[0] for alias in names)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.ExceptHandler(name=str() as name):
                yield name
            case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
                yield name
            case _:
                pass
