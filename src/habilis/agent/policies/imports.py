"""What code finds imported and defined: the prompt names it, and an export begins with it."""

import inspect
from collections.abc import Container, Mapping

from habilis.sandbox.code_rules import CodeRules
from habilis.tools.skills.run_script import run_script


def permitted_imports(
    imports: Mapping[str, str], rules: CodeRules | None, taken: Container[str] = ()
) -> dict[str, str]:
    """The imports that the code rules permit, without names that are taken."""
    return {
        name: module
        for name, module in imports.items()
        if name not in taken and (rules is None or rules.permits(module))
    }


def import_statements(imports: Mapping[str, str]) -> tuple[str, ...]:
    """One statement for each name. A module is imported under its own name."""
    return tuple(
        f'import {module}' if name == module else f'from {module} import {name}' for name, module in imports.items()
    )


def script_runner(rules: CodeRules | None, taken: Container[str]) -> dict[str, str]:
    """The source of `run_script` by its name; empty if the code rules forbid it, or the name is taken."""
    name, needed = run_script.__name__, ('os', 'runpy', 'subprocess', 'sys')
    if name in taken or (rules is not None and not all(map(rules.permits, needed))):
        return {}
    return {name: inspect.getsource(run_script)}
