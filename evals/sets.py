"""The sets of tasks: two of our own, and two read from a folder with public data."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evals.tasks import TOOLS, VARIABLES, Task

KINDS: dict[str, Any] = {'int': int, 'float': float, 'str': str, 'bool': bool, 'list': list, 'dict': dict}
MBPP = '{text}\n\nDefine the function in Python. Afterwards it is tested with:\n\n{tests}'


class MissingData(Exception):
    """The folder has no file for a set."""


def load_set(name: str, data: Path | None = None) -> tuple[Task, ...]:
    """All tasks of a set, in the order of its file. Raises `MissingData`."""
    if name in FILES:
        return _own_tasks(name)
    if data is None:
        msg = f'{name} needs a folder with its data: --data FOLDER'
        raise MissingData(msg)
    files = sorted(data.glob(f'{name}*.jsonl'))
    if not files:
        msg = f'there is no {name}*.jsonl in {data}'
        raise MissingData(msg)
    lines = files[0].read_text('utf-8').splitlines()
    return tuple(PUBLIC[name](number, json.loads(line)) for number, line in enumerate(lines, 1))


def _own_tasks(name: str) -> tuple[Task, ...]:
    rows = tomllib.loads(Path(__file__).with_name(FILES[name]).read_text('utf-8'))['task']
    return tuple(
        Task(
            id=row['id'],
            set=name,
            category=row['category'],
            text=row['text'],
            expected=row['expected'],
            kind=KINDS[row['kind']],
            variables={name: VARIABLES[name] for name in row.get('variables', ())},
            tools=tuple(TOOLS[name] for name in row.get('tools', ())),
        )
        for row in rows
    )


def _gsm8k(number: int, row: dict[str, Any]) -> Task:
    return Task(
        id=f'gsm8k-{number}',
        set='gsm8k',
        category='gsm8k',
        text=row['question'],
        expected=float(row['answer']),
        kind=float,
    )


def _mbpp(_: int, row: dict[str, Any]) -> Task:
    tests = tuple(code for code in (row['setup'], *row['tests']) if code)
    text = MBPP.format(text=row['text'], tests='\n'.join(tests))
    return Task(id=f'mbpp-{row["task_id"]}', set='mbpp', category='mbpp', text=text, tests=tests)


FILES = {'forty': 'tasks.toml', 'held-out': 'held_out.toml'}
PUBLIC: dict[str, Callable[[int, dict[str, Any]], Task]] = {'gsm8k': _gsm8k, 'mbpp': _mbpp}
SETS = (*FILES, *PUBLIC)
