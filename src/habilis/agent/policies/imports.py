"""Imports that a policy offers: code finds these names defined, the prompt lists them, an export begins with them."""

from collections.abc import Container, Mapping

from habilis.sandbox.code_rules import CodeRules


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
