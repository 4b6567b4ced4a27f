"""Finds missing imports of well-known modules and names. They run before the code, which stays as it was written."""

import ast
import builtins
from collections.abc import Collection, Iterator

from habilis.agent.parsing.syntax import statements

MODULES = frozenset(
    'base64 bisect calendar cmath collections copy csv decimal fractions functools hashlib heapq io itertools json '
    'math operator os pathlib random re statistics string sys textwrap time typing unicodedata'.split()
)
"""Modules, if used as `name.attribute` and not defined by other code."""

DATETIME = frozenset('date datetime time timedelta timezone UTC MINYEAR MAXYEAR'.split())
"""Attributes that the module `datetime` has. `datetime` is also the name of a class."""

NAMES = {
    **dict.fromkeys(('Counter', 'OrderedDict', 'defaultdict', 'deque', 'namedtuple'), 'collections'),
    **dict.fromkeys(('Decimal',), 'decimal'),
    **dict.fromkeys(('Fraction',), 'fractions'),
    **dict.fromkeys(('StringIO', 'BytesIO'), 'io'),
    **dict.fromkeys(('Path',), 'pathlib'),
    **dict.fromkeys(('dataclass',), 'dataclasses'),
    **dict.fromkeys(('date', 'timedelta'), 'datetime'),
    **dict.fromkeys(('chain', 'combinations', 'groupby', 'permutations'), 'itertools'),
    **dict.fromkeys(('ceil', 'factorial', 'floor', 'gcd', 'sqrt'), 'math'),
    **dict.fromkeys(('reduce',), 'functools'),
}
"""Names of the standard library, with their modules."""

_BUILTIN = frozenset(dir(builtins))


def free_names(code: str) -> set[str]:
    """The names that the code uses and does not define anywhere."""
    nodes = [node for statement in statements(code) or () for node in ast.walk(statement)]
    used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return used - _BUILTIN - {*_bound_names(nodes)}


def missing_imports(code: str, known: Collection[str]) -> list[str]:
    """The import statements that the code lacks. `known` are the names that are already defined."""
    nodes = [node for statement in statements(code) or () for node in ast.walk(statement)]
    bound = {*known, *_BUILTIN, *_bound_names(nodes)}
    found: dict[str, None] = {}
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name not in bound:
                if name in MODULES or (name == 'datetime' and attribute in DATETIME):
                    found[f'import {name}'] = None
            case ast.Name(id=name, ctx=ast.Load()) if name in NAMES and name not in bound:
                found[f'from {NAMES[name]} import {name}'] = None
            case _:
                pass
    return list(found)


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
