"""Tasks as rows of the database. Numbers, states and dependencies are checked."""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from datetime import date
from typing import Any, get_args

from habilis.core.errors import RememberError
from habilis.memory.contract import Task, TaskState
from habilis.memory.database import Cursor
from habilis.memory.entries import count_removal, find_owner, lock_owner

STATES: tuple[TaskState, ...] = get_args(TaskState)
MAX_TITLE = 500


def read_tasks(cursor: Cursor, user: str) -> dict[int, Task]:
    """The tasks of a user by number."""
    rows = cursor.all('SELECT number, data FROM {s}tasks WHERE owner = ? ORDER BY number', find_owner(cursor, user).key)
    return {number: task_of(number, json.loads(data)) for number, data in rows}


def add_task(cursor: Cursor, user: str, task: Task) -> Task:
    """Add a task under the next number. Raises `RememberError`."""
    owner = lock_owner(cursor, user)
    known = read_tasks(cursor, user)
    now = time.time()
    made = replace(task, number=max(known, default=0) + 1, created=now, updated=now)
    _check(made, known)
    _put(cursor, owner, made)
    return made


def change_task(cursor: Cursor, user: str, number: int, changes: Mapping[str, object]) -> Task:
    """Change fields of a task. Raises `RememberError`."""
    owner = lock_owner(cursor, user)
    known = read_tasks(cursor, user)
    fields: dict[str, Any] = {**changes, 'updated': time.time()}
    changed = replace(_known(known, number), **fields)
    _check(changed, known)
    _put(cursor, owner, changed)
    return changed


def restore_task(cursor: Cursor, user: str, task: Task) -> bool:
    """Add a task of an export under its own number. Whether it was new. Raises `RememberError`."""
    owner = lock_owner(cursor, user)
    known = read_tasks(cursor, user)
    if known.get(task.number) == task:
        return False
    if not 1 <= task.number < 2**53:
        msg = 'the number of the task is not valid'
        raise RememberError(msg)
    if task.number in known:
        msg = f'there is another task {task.number} already; delete it first: habilis tasks rm {task.number}'
        raise RememberError(msg)
    _check(task, known, complete=False)
    _put(cursor, owner, task)
    return True


def remove_task(cursor: Cursor, user: str, number: int) -> Task:
    """Delete a task. Others no longer depend on it. Raises `RememberError`."""
    owner = lock_owner(cursor, user)
    known = read_tasks(cursor, user)
    removed = _known(known, number)
    for other in known.values():
        if number in other.after:
            _put(cursor, owner, replace(other, after=tuple(one for one in other.after if one != number)))
    cursor.run('DELETE FROM {s}tasks WHERE owner = ? AND number = ?', owner, number)
    count_removal(cursor, owner)
    return removed


def task_of(number: int, fields: Mapping[str, Any]) -> Task:
    """The task of its stored fields."""
    due = fields.get('due')
    read: dict[str, Any] = {
        **fields,
        'after': tuple(fields.get('after', ())),
        'due': date.fromisoformat(due) if due else None,
    }
    return Task(number=number, **read)


def fields_of(task: Task) -> dict[str, Any]:
    """All fields but the number, as JSON types."""
    fields = {**asdict(task), 'after': list(task.after), 'due': task.due.isoformat() if task.due else None}
    del fields['number']
    return fields


def parse_due(text: str) -> date | None:
    """The date of a text; None if it is empty. Raises `RememberError`."""
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        msg = f'{text[:40]!r} is not a date: write it as 2030-01-31'
        raise RememberError(msg) from None


def _put(cursor: Cursor, owner: str, task: Task) -> None:
    sql = """INSERT INTO {s}tasks (owner, number, data) VALUES (?, ?, ?)
        ON CONFLICT (owner, number) DO UPDATE SET data = excluded.data"""
    cursor.run(sql, owner, task.number, json.dumps(fields_of(task)))


def _known(known: Mapping[int, Task], number: int) -> Task:
    if number not in known:
        msg = f'there is no task {number}; `habilis tasks list --all` shows all'
        raise RememberError(msg)
    return known[number]


def _check(task: Task, known: Mapping[int, Task], *, complete: bool = True) -> None:
    """Raise `RememberError` for a task that cannot be kept. `complete`: the tasks that it depends on must exist."""
    if not task.title.strip() or len(task.title) > MAX_TITLE:
        msg = f'the title of a task must have 1 to {MAX_TITLE} characters'
        raise RememberError(msg)
    if task.state not in STATES:
        msg = f'{str(task.state)[:40]!r} is not a state of a task: use one of {", ".join(STATES)}'
        raise RememberError(msg)
    if complete:
        for other in task.after:
            _known(known, other)
    if _reaches(task.number, task.after, known):
        msg = f'task {task.number} cannot depend on itself, directly or through others'
        raise RememberError(msg)
    waiting = [n for n in task.after if n in known and known[n].state not in ('completed', 'cancelled')]
    if complete and task.state == 'completed' and waiting:
        msg = f'task {task.number} must wait for {", ".join(map(str, waiting))}: complete or cancel these first'
        raise RememberError(msg)


def _reaches(number: int, after: Iterable[int], known: Mapping[int, Task]) -> bool:
    seen, todo = set[int](), list(after)
    while todo:
        one = todo.pop()
        if one == number:
            return True
        if one not in seen:
            seen.add(one)
            todo += known[one].after if one in known else ()
    return False
