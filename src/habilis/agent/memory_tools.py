"""The toolset `memory`: what an agent may do with the memory of its user."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from typing_extensions import TypedDict

from habilis.memory import Entry, Fact, Memory, Task
from habilis.memory.contract import FactKind, TaskState
from habilis.memory.tasks import parse_due
from habilis.sandbox.contract import Side
from habilis.tools.tool import AnyTool, tool
from habilis.tools.toolset import Toolset

MAX_RECALLED = 20


class Remembered(TypedDict):
    """An entry of the memory."""

    id: str
    type: str
    """`fact`, or `turn` of a conversation."""

    who: str
    """Who said it, or the kind of the fact."""

    session: str
    time: str
    text: str


class TaskItem(TypedDict):
    """A task."""

    number: int
    title: str
    state: TaskState
    after: list[int]
    due: str
    notes: str


TaskNumber = Annotated[int, 'as in list_tasks']
Due = Annotated[str, 'date such as 2030-01-31']
After = Annotated[list[int] | None, 'numbers of the tasks that must be completed before']


def memory_tools(
    memory: Memory, session: str | Callable[[], str], *, enabled: bool = True, side: Side = 'code'
) -> Toolset:
    """The toolset `memory`: `remember`, `recall`, `recent_conversations`, `forget`, and the tools for tasks.

    Args:
        memory: of the user that the agent works for.
        session: the conversation under way, or a function that returns it.
        enabled: whether it is enabled at the start.
        side: who may call its tools, as for `@tool`.
    """

    current = (lambda: session) if isinstance(session, str) else session
    tools = [*_entry_tools(memory, current, side), *_task_tools(memory, side)]
    return Toolset('memory', tools, enabled, for_subagents=False)


def _entry_tools(memory: Memory, session: Callable[[], str], side: Side) -> list[AnyTool]:
    @tool(side=side, as_sync=True)
    async def remember(
        text: Annotated[str, 'a short statement that will matter in later conversations'],
        kind: FactKind = 'fact',
        replaces: Annotated[str, 'id of a fact that is no longer true, as in recall'] = '',
        everywhere: Annotated[bool, 'about the user, not about this work: matters in other projects too'] = False,
    ) -> str:
        """Keep a fact about the user or their work for later conversations. Returns a sentence that says so."""
        turns = await memory.turns(session(), limit=1)
        source = turns[-1].id if turns else None
        fact = await memory.add_fact(text, kind, source=source, replaces=replaces or None, everywhere=everywhere)
        advice = '' if replaces else await _replaceable(memory, text)
        return f'Remembered: {fact.text} (id {fact.id}){advice}'  # models repeat the first line to the user

    @tool(side=side, as_sync=True, read_only=True)
    async def recall(
        query: Annotated[str, 'words or a question'],
        limit: int = 5,
        since: Annotated[str, 'date such as 2030-01-31; nothing older'] = '',
    ) -> list[Remembered]:
        """Search the facts and all earlier conversations, best first."""
        found = await memory.search(query, limit=min(max(limit, 1), MAX_RECALLED), since=_seconds(since))
        return [_remembered(hit.entry) for hit in found]

    @tool(side=side, as_sync=True, read_only=True)
    async def recent_conversations(
        limit: Annotated[int, 'number of turns'] = 10,
        all_sessions: Annotated[bool, 'not only this conversation'] = False,
    ) -> list[Remembered]:
        """The last turns of this conversation or of all, oldest first."""
        turns = await memory.turns(None if all_sessions else session(), limit=max(limit, 1))
        return [_remembered(turn) for turn in turns]

    @tool(side=side, as_sync=True, needs_approval=True, destructive=True)
    async def forget(id: Annotated[str, 'of a fact or turn, as in recall']) -> int:
        """Delete an entry for good, with what was drawn from it. Returns how many were deleted."""
        return len(await memory.forget(id))

    return [remember, recall, recent_conversations, forget]


async def _replaceable(memory: Memory, text: str) -> str:
    """How to say that a fact replaces one that is similar: only who says it knows."""
    similar = await memory.similar_facts(text)
    return ''.join(f'\nIf it replaces {one.text!r}: the same call with replaces={one.id!r}' for one in similar)


def _task_tools(memory: Memory, side: Side) -> list[AnyTool]:
    @tool(side=side, as_sync=True, idempotent=False)
    async def create_task(title: str, due: Due = '', notes: str = '', after: After = None) -> TaskItem:
        """Add a task that is kept for later conversations."""
        return _item(await memory.add_task(title, due=parse_due(due), notes=notes, after=after or ()))

    @tool(side=side, as_sync=True)
    async def update_task(
        number: TaskNumber,
        state: TaskState | None = None,
        title: str | None = None,
        due: Due = '',
        notes: str | None = None,
        after: After = None,
    ) -> TaskItem:
        """Change a task; what is not given stays."""
        changed = await memory.update_task(
            number, state=state, title=title, due=parse_due(due), notes=notes, after=after
        )
        return _item(changed)

    @tool(side=side, as_sync=True, read_only=True)
    async def list_tasks(all: Annotated[bool, 'also completed and cancelled ones'] = False) -> list[TaskItem]:
        """The open tasks, by due date."""
        return [_item(task) for task in await memory.tasks(all=all)]

    return [create_task, update_task, list_tasks]


def _remembered(entry: Entry) -> Remembered:
    at = time.strftime('%Y-%m-%d %H:%M', time.localtime(entry.time))
    if isinstance(entry, Fact):
        return Remembered(id=entry.id, type='fact', who=entry.kind, session='', time=at, text=entry.text)
    return Remembered(id=entry.id, type='turn', who=entry.role, session=entry.session, time=at, text=entry.text)


def _item(task: Task) -> TaskItem:
    due = task.due.isoformat() if task.due else ''
    return TaskItem(
        number=task.number, title=task.title, state=task.state, after=list(task.after), due=due, notes=task.notes
    )


def _seconds(day: str) -> float | None:
    found = parse_due(day)
    return None if found is None else datetime(found.year, found.month, found.day).astimezone().timestamp()
