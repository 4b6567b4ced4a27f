"""Every third-party import of Habilis and its benchmarks is a dependency of `pyproject.toml`, or in an extra."""

import re
import sys
import tomllib
from importlib.metadata import packages_distributions

from tests.house.imports import modules
from tests.house.repository import BENCHMARKS, PACKAGE, ROOT

BUILT_IN_THE_GUEST = frozenset({'stdlib', 'timezones', 'wit_world'})
"""Modules that the build of the WebAssembly component generates."""

NOT_INSTALLED_BY_DEV = {
    'dbos': 'dbos',
    'eryx': 'pyeryx',
    'pydantic_monty': 'pydantic-monty',
    'smolagents': 'smolagents',
    'sqlalchemy': 'sqlalchemy',
}
"""Imported packages that may be absent here, so that their distribution cannot be looked up."""

PARTS = {'fastmcp-slim': 'fastmcp', 'pydantic-monty-client': 'pydantic-monty'}
"""Distributions that are a part of one that is declared."""


def _normalized(name: str) -> str:
    return re.sub(r'[-_.]+', '-', name).lower()


def _declared() -> set[str]:
    project = tomllib.loads((ROOT / 'pyproject.toml').read_text('utf-8'))['project']
    requirements = [
        *project['dependencies'],
        *(each for extra in project['optional-dependencies'].values() for each in extra),
    ]
    return {_normalized(re.split(r'[^\w.-]', requirement, maxsplit=1)[0]) for requirement in requirements}


def _imported() -> dict[str, str]:
    """Top-level name of each third-party import, and one module that imports it."""
    ours = {*sys.stdlib_module_names, *BUILT_IN_THE_GUEST, 'habilis', 'benchmarks'}
    found = (*modules(PACKAGE), *modules(BENCHMARKS))
    tops = ((target.partition('.')[0], module.name) for module in found for _, target in module.imports)
    return {top: name for top, name in tops if top not in ours}


def test_every_third_party_import_is_declared() -> None:
    declared, installed = _declared(), packages_distributions()
    missing = {
        top: module
        for top, module in _imported().items()
        if not declared
        & {_normalized(PARTS.get(name, name)) for name in installed.get(top) or [NOT_INSTALLED_BY_DEV.get(top, top)]}
    }
    assert not missing


def test_every_declared_dependency_is_pinned_for_developers() -> None:
    project = tomllib.loads((ROOT / 'pyproject.toml').read_text('utf-8'))['project']
    pinned = {_normalized(line.partition('==')[0]) for line in (ROOT / 'constraints.txt').read_text().splitlines()}
    names = {_normalized(re.split(r'[^\w.-]', requirement, maxsplit=1)[0]) for requirement in project['dependencies']}
    assert names <= pinned
