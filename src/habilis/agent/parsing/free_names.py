"""Names that code uses and does not define: those of tools that it may call."""

import ast
import builtins
from collections.abc import Container, Iterator

from habilis.agent.parsing.syntax import statements

_BUILTIN = frozenset(dir(builtins))
_TOOLS = 'tools'
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.NamedExpr)


def free_names(code: str, variables: Container[str] = ()) -> set[str]:
    """The names that the code uses and does not define anywhere, without these variables; and each NAME of
    `tools.NAME`."""
    nodes = [node for statement in statements(code) or () for node in ast.walk(statement)]
    used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    free = {name for name in used - _BUILTIN - {*_bound_names(nodes)} if name not in variables}
    return free | ({*_attributes(nodes, _TOOLS)} if _TOOLS in free else set())


def _attributes(nodes: list[ast.AST], name: str) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=found), attr=attribute) if found == name:
                yield attribute
            case _:
                pass


def _bound_names(nodes: list[ast.AST]) -> Iterator[str]:
    """Every name that the code defines, anywhere. An assignment that calls its own target (`rows = rows()`) calls
    something that is there before."""
    own = {target for node in nodes if isinstance(node, _ASSIGNMENTS) for target in _called_targets(node)}
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                if node not in own:
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


def _called_targets(node: ast.Assign | ast.AnnAssign | ast.NamedExpr) -> Iterator[ast.Name]:
    """The targets of an assignment whose names its value calls."""
    called = {
        call.func.id
        for call in (ast.walk(node.value) if node.value is not None else ())
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    }
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        yield from (name for name in ast.walk(target) if isinstance(name, ast.Name) and name.id in called)
