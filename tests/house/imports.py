"""Which room imports which: the rule of the house, checked on the syntax tree of every module."""

import ast
import functools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from habilis.core.syntax import parse_module

_FIRST_ROOMS: dict[str, frozenset[str]] = {
    'core': frozenset(),
    'journal': frozenset({'core'}),
    'models': frozenset({'core'}),
    'sandbox': frozenset({'core'}),
    'tools': frozenset({'core', 'sandbox'}),
    'memory': frozenset({'core', 'journal'}),
}
_LATER_ROOMS = ('agent', 'flows', 'rollouts', 'forge', 'research', 'assistant', 'server', 'cli')
"""Each of these may import every room above it."""


def _table() -> dict[str, frozenset[str]]:
    table = dict(_FIRST_ROOMS)
    for room in _LATER_ROOMS:
        table[room] = frozenset(table)
    return table | {'integrations': frozenset({'core', 'sandbox'})}  # which no room may import


MAY_IMPORT = _table()
"""The table of the design: a room, and the other rooms that it may import."""

GUEST = 'habilis.sandbox.guest'
CODEC = 'habilis.core.codec'
GUEST_EXTRAS = {f'{GUEST}.state': frozenset({'cloudpickle'})}
"""Guest modules that may import something from outside the standard library."""

_OPEN_TO_ALL = 'habilis._version'


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One file of the package."""

    name: str
    room: str | None
    """None for the few modules of the package root."""
    imports: tuple[tuple[int, str], ...]
    """The dotted names that it imports, each after its line."""


def violations(package: Path) -> list[str]:
    """Every import under `package` that the rule of the house forbids, as `module:line: reason`."""
    found: list[str] = []
    for module in modules(package):
        if module.room and module.room not in MAY_IMPORT:
            found.append(f'{module.name}: no room named {module.room!r} in the table of the design')
        found += [
            f'{module.name}:{line}: {reason}'
            for line, target in module.imports
            if (reason := _objection(module, target))
        ]
    return found


@functools.cache
def modules(package: Path) -> tuple[Module, ...]:
    """Every module under `package`, the folder of `habilis`."""
    return tuple(_read_modules(package))


def _read_modules(package: Path) -> Iterator[Module]:
    for path in sorted(package.rglob('*.py')):
        inside = path.relative_to(package)
        name = _dotted(PurePosixPath(package.name, inside))
        tree = parse_module(path.read_text(encoding='utf-8'))
        parent = name if path.name == '__init__.py' else name.rpartition('.')[0]
        room = inside.parts[0] if len(inside.parts) > 1 else None
        yield Module(name=name, room=room, imports=tuple(_imports(tree, parent)))


def _dotted(path: PurePosixPath) -> str:
    parts = path.with_suffix('').parts
    return '.'.join(parts[:-1] if parts[-1] == '__init__' else parts)


def _imports(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Every import in `tree`, also those inside functions and under `if TYPE_CHECKING`."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(names=names, module=module, level=level):
                origin = _absolute(package, module, level)
                yield from ((node.lineno, f'{origin}.{alias.name}') for alias in names)
            case ast.Call(
                func=ast.Name(id='import_module' | '__import__') | ast.Attribute(attr='import_module'),
                args=[ast.Constant(value=str(target)), *_],
            ):
                yield node.lineno, target
            case _:
                pass


def _absolute(package: str, module: str | None, level: int) -> str:
    if not level:
        return module or ''
    parts = package.split('.')
    kept = parts[: len(parts) - level + 1]
    return '.'.join([*kept, module] if module else kept)


def _objection(module: Module, target: str) -> str | None:
    """Why `module` may not import `target`, or None."""
    if _inside(module.name, GUEST) or module.name == CODEC:
        return _guest_objection(module.name, target)
    if module.room is None or not _inside(target, 'habilis') or _inside(target, _OPEN_TO_ALL):
        return None
    wanted = target.split('.')[1] if '.' in target else None
    if wanted not in MAY_IMPORT:
        return f'{target}: a room imports a name from the room that owns it, not from the package root'
    if wanted == module.room or wanted in MAY_IMPORT.get(module.room, frozenset()):
        return None
    return f'{target}: {module.room} may not import {wanted}'


def _guest_objection(importer: str, target: str) -> str | None:
    top = target.partition('.')[0]
    if top in sys.stdlib_module_names or top in GUEST_EXTRAS.get(importer, frozenset()) or _inside(target, GUEST):
        return None
    if _inside(target, CODEC):  # the codec runs on both sides, so the same rule holds for it
        return None
    return f'{target}: the guest may import only the standard library, the codec and itself'


def _inside(name: str, package: str) -> bool:
    return name == package or name.startswith(f'{package}.')
