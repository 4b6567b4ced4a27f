"""The subcommands of `habilis tasks`."""

from collections.abc import Sequence
from dataclasses import dataclass

from habilis.cli.memory.opening import with_memory
from habilis.cli.options import confirm_deletion
from habilis.cli.printing import print_json, print_table
from habilis.cli.streams import say
from habilis.memory import Memory, Task
from habilis.memory.contract import TaskState
from habilis.memory.tasks import parse_due


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Fields of a task; None: not given."""

    state: TaskState | None = None
    title: str | None = None
    due: str | None = None
    notes: str | None = None
    after: Sequence[int] | None = None


def list_tasks(where: str | None, user: str | None, *, all: bool, as_json: bool) -> int:
    """Print the tasks."""

    async def work(memory: Memory) -> int:
        tasks = await memory.tasks(all=all)
        if as_json:
            print_json(tasks)
        elif tasks:
            print_tasks(tasks)
        else:
            say('no tasks' if all else 'no open tasks')
        return 0

    return with_memory(where, user, work)


def print_tasks(tasks: Sequence[Task]) -> None:
    """Print a table of tasks."""
    print_table(('TASK', 'STATE', 'DUE', 'AFTER', 'TITLE'), [_row(task) for task in tasks])


def _row(task: Task) -> tuple[str, ...]:
    due = task.due.isoformat() if task.due else ''
    return str(task.number), task.state, due, ', '.join(map(str, task.after)), task.title


def add_task(given: Changes, where: str | None, user: str | None, *, as_json: bool) -> int:
    """Add a task, and print its number."""

    async def work(memory: Memory) -> int:
        task = await memory.add_task(
            given.title or '', due=parse_due(given.due or ''), notes=given.notes or '', after=given.after or ()
        )
        print_json(task) if as_json else print(task.number)
        return 0

    return with_memory(where, user, work)


def update_tasks(numbers: Sequence[int], given: Changes, where: str | None, user: str | None, *, as_json: bool) -> int:
    """Change tasks."""

    async def work(memory: Memory) -> int:
        changed = [
            await memory.update_task(
                number,
                state=given.state,
                title=given.title,
                due=parse_due(given.due or ''),
                clear_due=given.due == '',
                notes=given.notes,
                after=given.after,
            )
            for number in numbers
        ]
        if as_json:
            print_json(changed)
        for task in () if as_json else changed:
            say(f'task {task.number} is {task.state}: {task.title}')
        return 0

    return with_memory(where, user, work)


def remove_tasks(numbers: Sequence[int], where: str | None, user: str | None, *, yes: bool, as_json: bool) -> int:
    """Delete tasks after confirmation."""

    async def work(memory: Memory) -> int:
        what = f'task {numbers[0]}' if len(numbers) == 1 else f'{len(numbers)} tasks'
        if not confirm_deletion(f'Delete {what} for good?', yes=yes):
            return 1
        removed = [await memory.remove_task(number) for number in dict.fromkeys(numbers)]
        if as_json:
            print_json(removed)
        for task in () if as_json else removed:
            say(f'deleted task {task.number}: {task.title}')
        return 0

    return with_memory(where, user, work)
