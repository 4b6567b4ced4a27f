"""What a run does to the world: lines of a file, one for each effect, which nothing takes back."""

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from habilis.flows.context import active_step
from habilis.journal import current_scope

FOLDER = 'HABILIS_TEST_EFFECTS'
"""The variable of the environment that names the folder of these files."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """One thing that was done."""

    label: str
    """Of its own for everything that a run does."""

    path: str
    """The step that did it."""

    value: str
    once: bool


def happen(label: str, value: str, *, once: bool = False) -> str:
    """Do something that can be seen afterwards, whatever becomes of this process. Gives `value` back."""
    scope = current_scope() or active_step()  # the second on a thread
    assert scope is not None
    fields = {'label': label, 'path': scope.path, 'value': value, 'once': once}
    file = os.open(effects_file(os.environ[FOLDER], scope.journal.run), os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    try:
        os.write(file, f'{json.dumps(fields)}\n'.encode())
    finally:
        os.close(file)
    return value


def effects_file(folder: str | Path, run: str) -> Path:
    """Where the effects of a run are."""
    return Path(folder, f'{run}.effects')


def effects_of(folder: str | Path, run: str) -> list[Effect]:
    """All that a run has done, in order."""
    try:
        lines = effects_file(folder, run).read_text().splitlines()
    except FileNotFoundError:
        return []
    return [Effect(**cast('dict[str, Any]', json.loads(line))) for line in lines]


def repeated(effects: list[Effect]) -> list[str]:
    """What must be done once, and was not."""
    counted = Counter(effect.label for effect in effects if effect.once)
    return sorted(label for label, count in counted.items() if count != 1)
