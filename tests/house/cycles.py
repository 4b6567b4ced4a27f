"""Import cycles between the modules of one room, and between its folders."""

from collections.abc import Iterable, Mapping, Set
from pathlib import Path

from tests.house.imports import modules

Graph = Mapping[str, Set[str]]


def import_graph(package: Path, room: str) -> Graph:
    """The modules of a room, and the modules of the same room that each one imports.

    Imports inside functions and under `if TYPE_CHECKING` count too.
    """
    found = {
        module.name: [target for _, target in module.imports] for module in modules(package) if module.room == room
    }
    return {name: _within(targets, found) - {name} for name, targets in found.items()}


def _within(targets: Iterable[str], names: Mapping[str, object]) -> set[str]:
    """The modules among `names` that these dotted names refer to: a module, or a name in one."""
    parents = {target: target.rpartition('.')[0] for target in targets}
    return {
        target if target in names else parent for target, parent in parents.items() if {target, parent} & set(names)
    }


def cycles(graph: Graph) -> list[list[str]]:
    """Groups of modules that import each other, directly or through others, sorted by name."""
    reachable = {name: _reachable(graph, name) for name in graph}
    groups = {
        tuple(sorted(other for other in reachable[name] if name in reachable[other]))
        for name in graph
        if name in reachable[name]
    }
    return [list(group) for group in sorted(groups)]


def _reachable(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    pending = [start]
    while pending:
        new = graph[pending.pop()] - found
        found |= new
        pending += new
    return found


def folders_in_both_directions(graph: Graph) -> list[tuple[str, str]]:
    """Pairs of folders of a room that import each other. Modules directly in the room are not in a folder."""
    folders = {name: _folder(name, graph) for name in graph}
    arrows = {
        (folders[name], folders[target])
        for name, targets in graph.items()
        for target in targets
        if folders[name] and folders[target]
    }
    return sorted((one, other) for one, other in arrows if one < other and (other, one) in arrows)


def _folder(name: str, graph: Graph) -> str:
    """The folder of the room that a module is in; empty if it is directly in the room."""
    inside = name.split('.')[2:]
    is_folder = len(inside) == 1 and any(other.startswith(f'{name}.') for other in graph)
    return inside[0] if len(inside) > 1 or is_folder else ''
