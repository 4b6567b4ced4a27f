"""Finds what is wrong with a library: damage, edits by hand, missing dependencies, tools that do the same."""

import ast
import difflib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from habilis.core.errors import ForgeError, ToolDefinitionError
from habilis.core.syntax import parse_module
from habilis.forge.checks.verification import verify
from habilis.forge.contract import Manifest
from habilis.forge.library.library import CURRENT, MERGED, Library
from habilis.forge.source import read_source
from habilis.tools.tool_names import check_name

SIMILAR = 0.9
"""Share of equal words in the summaries of two tools, from which on they are reported as similar."""

_MAX_BUCKET = 50


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong, and what to do."""

    tool: str
    what: str
    fix: str
    is_error: bool = True
    """Whether something does not work; else it is advice."""


def check_library(library: Library) -> list[Problem]:
    """All problems, errors first."""
    problems = [*_leftovers(library), *_index_problems(library), *_usage_problems(library)]
    manifests: list[Manifest] = []
    for name in library.names():
        found, made = _check_tool(library, name)
        problems += found
        if made is not None:
            manifests.append(made)
    problems += _similar(library, manifests)
    return sorted(problems, key=lambda problem: not problem.is_error)


async def repair(library: Library) -> list[str]:
    """Delete leftovers, accept manual edits that pass their tests, rebuild the index. Returns what was done."""
    if not library.folder.is_dir():
        return []
    done = [f'deleted {name}, left by a writer that was killed' for name in library.remove_leftovers()]
    for name in library.names():
        try:
            edited = [version for version in library.versions(name) if library.is_edited(name, version)]
            done += [await _accept(library, name, version) for version in edited]
        except ForgeError:
            continue  # the report names it
    done.append(f'made the index anew: {library.rebuild_index()} tools')
    return done


async def _accept(library: Library, name: str, version: int) -> str:
    candidate = library.candidate(name, version)
    tested = await verify(replace(candidate, uses=library.uses_of(candidate.code, name, candidate.language)))
    if not tested.ok:
        return f'did not accept the edits of {name} version {version}: its tests fail: {tested.report}'
    library.accept_edits(name, version)
    return f'accepted the edits of {name} version {version}, which pass its tests'


def _leftovers(library: Library) -> Iterator[Problem]:
    """Folders that are no tools."""
    try:
        entries = sorted(os.scandir(library.folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.name.startswith('.new-'):
            yield Problem(tool='', what=f'{entry.name} was left by a writer that was killed', fix='doctor --fix')
        elif entry.name.startswith('.') or not entry.is_dir():
            continue
        elif not any(os.path.isfile(os.path.join(entry.path, file)) for file in (CURRENT, MERGED)):
            fix = f'write the number of a version into {os.path.join(entry.path, CURRENT)}, or delete the folder'
            yield Problem(tool=entry.name, what='no version of it is in use, so it is not visible', fix=fix)


def _index_problems(library: Library) -> Iterator[Problem]:
    for name, version in sorted(library.indexed().items()):
        try:
            used = library.current(name)
        except ForgeError:
            continue  # a problem of the tool
        if used != version:
            yield Problem(tool=name, what=f'the index has version {version}, not {used}', fix='doctor --fix')


def _usage_problems(library: Library) -> Iterator[Problem]:
    try:
        library.usage.read()
    except ForgeError as error:
        yield Problem(tool='', what=str(error), fix='delete the file')


def _check_tool(library: Library, name: str) -> tuple[list[Problem], Manifest | None]:
    try:
        check_name(name)
        current = library.current(name)
        found = [
            problem for version in library.versions(name) for problem in _check_version(library, name, version, current)
        ]
        return found, library.manifest(name)
    except ToolDefinitionError as error:
        return [Problem(tool=name, what=str(error), fix='rename the folder and the function in it')], None
    except ForgeError as error:
        return [Problem(tool=name, what=str(error), fix=f'restore the file, or: habilis tools rm {name}')], None


def _check_version(library: Library, name: str, version: int, current: int) -> Iterator[Problem]:
    made = library.manifest(name, version)
    if (made.name, made.version) != (name, version):
        what = f'the manifest of version {version} is that of {made.name} version {made.version}'
        yield Problem(tool=name, what=what, fix='restore the folder from a copy')
        return
    if library.is_edited(name, version):
        what, fix = f'version {version} was edited by hand', 'doctor --fix, which accepts edits that pass the tests'
        yield Problem(tool=name, what=what, fix=fix)
    try:
        candidate = library.candidate(name, version)
        read_source(name, candidate.code, candidate.language)
    except ForgeError as error:
        fix = 'import or build what is missing, or go back to another version: habilis tools history'
        yield Problem(tool=name, what=f'version {version}: {error}', fix=fix, is_error=version == current)


def _similar(library: Library, manifests: list[Manifest]) -> Iterator[Problem]:
    """Pairs of tools that seem to do the same."""
    buckets: dict[str, list[tuple[Manifest, list[str]]]] = {}
    shapes: dict[str, str] = {}
    for made in manifests:
        shape = _shape(library, made.name)
        if shape and shape in shapes:
            what, fix = f'its code is that of {shapes[shape]}', f'habilis tools merge {shapes[shape]} {made.name}'
            yield Problem(tool=made.name, what=what, fix=fix, is_error=False)
            continue
        shapes[shape] = made.name
        words = made.summary.lower().split()
        seen: set[str] = set()
        for other, others in (pair for word in set(words) for pair in buckets.get(word, ())):
            if other.name not in seen and difflib.SequenceMatcher(None, words, others).ratio() >= SIMILAR:
                what, fix = (
                    f'its summary is nearly that of {other.name}',
                    f'habilis tools merge {other.name} {made.name}',
                )
                yield Problem(tool=made.name, what=what, fix=fix, is_error=False)
            seen.add(other.name)
        for word in set(words):
            bucket = buckets.setdefault(word, [])
            if len(bucket) < _MAX_BUCKET:  # a word that many tools have says little
                bucket.append((made, words))


def _shape(library: Library, name: str) -> str:
    """The code without names of functions, docstrings and comments: equal for copies under other names."""
    try:
        tree = parse_module(library.candidate(name).code)
    except (ForgeError, SyntaxError, ValueError, RecursionError):
        return ''
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef | ast.Name) and name in (
            getattr(node, 'name', ''),
            getattr(node, 'id', ''),
        ):
            setattr(node, 'name' if isinstance(node, ast.FunctionDef) else 'id', '_')
    return ast.dump(tree)
