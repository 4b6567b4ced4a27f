"""What code finds imported and defined: the prompt names it, and an export begins with it."""

import inspect
from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from habilis.sandbox.code_rules import CodeRules
from habilis.tools.skills.run_script import run_script

_NEEDED = ('os', 'runpy', 'subprocess', 'sys')
"""What `run_script` imports."""


@dataclass(frozen=True, kw_only=True)
class Declared:
    """Names that are there before the first cell."""

    imports: Mapping[str, str] = field(default_factory=dict[str, str])
    """Imported names, with their modules. A module is imported under its own name."""

    definitions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Defined functions, with their source."""

    @classmethod
    def permitted(
        cls, imports: Mapping[str, str], rules: CodeRules | None, *, taken: Container[str] = (), scripts: bool = False
    ) -> 'Declared':
        """What the code rules permit, without names that are taken. `scripts`: with `run_script`."""

        def permits(module: str) -> bool:
            return rules is None or rules.permits(module)

        has_runner = scripts and run_script.__name__ not in taken and all(map(permits, _NEEDED))
        return cls(
            imports={name: module for name, module in imports.items() if name not in taken and permits(module)},
            definitions={run_script.__name__: inspect.getsource(run_script)} if has_runner else {},
        )

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.imports, *self.definitions)

    def statements(self, without: Container[str] = ()) -> tuple[str, ...]:
        """The code that imports and defines them, except those `without`."""
        imported = [
            f'import {module}' if name == module else f'from {module} import {name}'
            for name, module in self.imports.items()
            if name not in without
        ]
        return (*imported, *(source for name, source in self.definitions.items() if name not in without))
