"""The toolset `todo`: a todo list of the model."""

from typing import Literal, cast

from typing_extensions import TypedDict

from habilis.core.errors import ToolCallError
from habilis.sandbox.contract import Side, ToolCall
from habilis.tools.logs import memory
from habilis.tools.tool import tool
from habilis.tools.toolset import Toolset

Status = Literal['pending', 'in_progress', 'completed']
TODO_WRITE = 'todo_write'
_MARKS: dict[Status, str] = {'pending': '[ ]', 'in_progress': '[>]', 'completed': '[x]'}


class TodoItem(TypedDict):
    """One thing to do."""

    id: int | str
    text: str
    status: Status


def todo_toolset(*, enabled: bool = True, side: Side = 'code') -> Toolset:
    """The toolset `todo`: `todo_write` and `todo_read`. Each run has a list of its own, which starts empty.

    Args:
        enabled: whether it is enabled at the start.
        side: who may call its tools, as for `@tool`.
    """
    alone: list[TodoItem] = []
    key = object()

    def todo() -> list[TodoItem]:
        kept = memory()
        return alone if kept is None else cast('list[TodoItem]', kept.setdefault(key, []))

    @tool(in_memory=True, side=side)
    def todo_write(items: list[TodoItem]) -> str:
        """Replace the whole todo list. Each item has its own id; at most one is in progress."""
        problems = _problems(items)
        if problems:
            msg = 'the todo list was not changed:\n' + '\n'.join(f'  {problem}' for problem in problems)
            raise ToolCallError(msg)
        todo()[:] = items
        return '\n'.join(map(todo_text, items)) or '(empty)'

    @tool(in_memory=True, side=side)
    def todo_read() -> list[TodoItem]:
        """The todo list."""
        return [item.copy() for item in todo()]

    return Toolset('todo', [todo_write, todo_read], enabled=enabled, for_subagents=False)


def todo_text(item: TodoItem) -> str:
    """One line about a thing to do."""
    return f'{_MARKS[item["status"]]} {item["id"]}: {item["text"]}'


def todo_items(call: ToolCall) -> list[TodoItem] | None:
    """The list that a call has written; None if it has not."""
    if call.tool != TODO_WRITE or not call.ok or call.arguments is None:
        return None
    return cast('list[TodoItem]', call.arguments['items'])  # the tool has validated them


def _problems(items: list[TodoItem]) -> list[str]:
    found: list[str] = []
    seen: set[str] = set()
    for item in items:
        name = str(item['id'])
        if not name.strip():
            found.append('an id is empty')
        if name in seen:
            found.append(f'id {name} is used twice; ids must differ')
        if not item['text'].strip():
            found.append(f'item {name} has no text')
        seen.add(name)
    busy = [str(item['id']) for item in items if item['status'] == 'in_progress']
    if len(busy) > 1:
        found.append(f'items {", ".join(busy)} are all in progress; at most one may be')
    return found
