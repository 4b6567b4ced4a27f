"""The tasks of `habilis map`: one per line."""

import json
from collections.abc import Iterator

import typer

from habilis.cli.text_files import read_text
from habilis.core.narrowing import is_dict
from habilis.flows.mapping import MapTask

_FIELDS = frozenset({'task', 'variables', 'id'})


def read_tasks(file: str) -> list[MapTask]:
    """The tasks of a file, or of stdin for `-`. Raises `BadParameter` that names the line."""
    return list(_tasks(file, read_text(file, 'a file of tasks')))


def _tasks(file: str, text: str) -> Iterator[MapTask]:
    for number, line in enumerate(text.split('\n'), 1):
        if not line.strip():
            continue
        try:
            yield _task(number, json.loads(line))
        except ValueError as error:
            msg = f'line {number} of {file} is no task: {error}'
            raise typer.BadParameter(msg, param_hint='TASKS') from None


def _task(number: int, value: object) -> MapTask:
    fields = {'task': value} if isinstance(value, str) else value
    if not is_dict(fields) or fields.keys() - _FIELDS:
        msg = 'write a JSON string, or an object with "task", "variables" and "id"'
        raise ValueError(msg)
    task, variables, name = fields.get('task'), fields.get('variables', {}), fields.get('id', '')
    if not isinstance(task, str) or not task.strip() or not is_dict(variables):
        msg = '"task" must be text, and "variables" an object'
        raise ValueError(msg)
    return MapTask(number=number, task=task, variables={str(k): v for k, v in variables.items()}, id=str(name))
