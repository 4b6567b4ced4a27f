"""The memory and the tasks of a user over HTTP: search, add, correct, forget."""

from starlette.requests import Request
from starlette.responses import Response

from habilis.memory import Entry, Fact, Hit, Task
from habilis.memory.context import describe
from habilis.server.assistant.conversations import Conversations
from habilis.server.assistant.models import (
    EntryList,
    EntryModel,
    FactRequest,
    TaskChange,
    TaskList,
    TaskModel,
    TaskRequest,
    json_response,
)
from habilis.server.models import Done, parse_request
from habilis.server.operations import BadRequest

MAX_HITS = 50


async def list_memory(conversations: Conversations, request: Request) -> Response:
    """The facts that the memory has, the newest first; with `q`, the facts and turns that fit it, and why."""
    memory = await conversations.memory(request.scope['owner'])
    if query := request.query_params.get('q', '').strip():
        return json_response(EntryList(entries=[_hit(hit) for hit in await memory.search(query, limit=MAX_HITS)]))
    return json_response(EntryList(entries=[_entry(fact) for fact in reversed(await memory.facts())]))


async def add_fact(conversations: Conversations, request: Request) -> Response:
    """Remember a fact, perhaps in place of another."""
    wanted = parse_request(FactRequest, await request.body())
    memory = await conversations.memory(request.scope['owner'])
    return json_response(_entry(await memory.add_fact(wanted.text, wanted.kind, replaces=wanted.replaces)), 201)


async def forget(conversations: Conversations, request: Request) -> Response:
    """Forget a fact or a turn, and what was drawn from it."""
    memory = await conversations.memory(request.scope['owner'])
    return json_response(Done(ok=bool(await memory.forget(request.path_params['id']))))


async def list_tasks(conversations: Conversations, request: Request) -> Response:
    """The open tasks; with `q`, those that have its words."""
    memory = await conversations.memory(request.scope['owner'])
    words = request.query_params.get('q', '').lower().split()
    tasks = [
        task for task in await memory.tasks() if all(word in f'{task.title} {task.notes}'.lower() for word in words)
    ]
    return json_response(TaskList(tasks=[_task(task) for task in tasks]))


async def add_task(conversations: Conversations, request: Request) -> Response:
    """Add a task."""
    wanted = parse_request(TaskRequest, await request.body())
    memory = await conversations.memory(request.scope['owner'])
    return json_response(_task(await memory.add_task(wanted.title, due=wanted.due)), 201)


async def change_task(conversations: Conversations, request: Request) -> Response:
    """Say where a task stands, or correct it."""
    wanted = parse_request(TaskChange, await request.body())
    memory = await conversations.memory(request.scope['owner'])
    changed = await memory.update_task(_number(request), state=wanted.state, title=wanted.title, due=wanted.due)
    return json_response(_task(changed))


async def remove_task(conversations: Conversations, request: Request) -> Response:
    """Delete a task."""
    memory = await conversations.memory(request.scope['owner'])
    await memory.remove_task(_number(request))
    return json_response(Done())


OPERATIONS = (
    ('GET', '/api/memory', list_memory, None, EntryList),
    ('POST', '/api/memory', add_fact, FactRequest, EntryModel),
    ('DELETE', '/api/memory/{id}', forget, None, Done),
    ('GET', '/api/tasks', list_tasks, None, TaskList),
    ('POST', '/api/tasks', add_task, TaskRequest, TaskModel),
    ('PATCH', '/api/tasks/{number}', change_task, TaskChange, TaskModel),
    ('DELETE', '/api/tasks/{number}', remove_task, None, Done),
)


def _number(request: Request) -> int:
    text = request.path_params['number']
    if not text.isdecimal():
        msg = f'{text[:40]!r} is not the number of a task'
        raise BadRequest(msg)
    return int(text)


def _hit(hit: Hit) -> EntryModel:
    return _entry(hit.entry, describe(hit))


def _entry(entry: Entry, why: str = '') -> EntryModel:
    kind, session = (entry.kind, '') if isinstance(entry, Fact) else (entry.role, entry.session)
    return EntryModel(id=entry.id, kind=kind, text=entry.text, time=entry.time, session=session, why=why)


def _task(task: Task) -> TaskModel:
    return TaskModel(number=task.number, title=task.title, state=task.state, due=task.due, notes=task.notes)
