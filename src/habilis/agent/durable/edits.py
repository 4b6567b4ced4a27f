"""Forks with something changed: the task of an agent, the code of a step, or the result of a tool call."""

import json
import re
from dataclasses import replace

from habilis.agent.context.prompt import PYTHON
from habilis.agent.durable.recorder import TOOL_RESULT
from habilis.agent.durable.records import ASK, REPLY_CODEC
from habilis.agent.durable.runs import title_of
from habilis.agent.durable.trajectory import TASK
from habilis.agent.parsing.replies import parse_reply
from habilis.core.codec import Json
from habilis.core.errors import JournalError
from habilis.core.narrowing import json_object
from habilis.journal import Record, RunInfo, Store
from habilis.journal.index import PathRecords, name_of, parent_of
from habilis.journal.runs import RunView, fork, read_run
from habilis.models.contract import Reply


async def fork_edited(
    store: Store, run: str, path: str, new: Json, *, user: str | None = None, session: str | None = None
) -> RunInfo:
    """Copy a run up to a step that is changed, to a new run, which goes on from there when it is resumed.

    Args:
        store: the store of the run.
        run: the id of the run.
        path: of the agent, whose task is replaced; of a request to the model (`ask`), whose reply gets other code; or
            of a tool call, which gets another result.
        new: the task or the code, as text; or the result.
        user: the user that the run must belong to; None for any.
        session: the conversation that the new run belongs to; None for that of the run.
    """
    view = await read_run(store, run, user=user)
    record = await _edited(view, path, view.index.find(path), new)
    title = title_of(new) if record.kind == 'opened' and isinstance(new, str) else None
    return await fork(store, run, record.seq + 1, user=user, session=session, title=title, instead=record)


async def _edited(view: RunView, path: str, entry: PathRecords | None, new: Json) -> Record:
    """The record of a step as it is in the fork. Raises `JournalError`."""
    end = entry.end if entry is not None else None
    if end is not None and '(' in name_of(path):
        return replace(end, kind='done', value=TOOL_RESULT.write(new))
    opened = entry.opened if entry is not None else None
    if isinstance(new, str) and opened is not None and not parent_of(path):
        return replace(opened, value={**json_object(await view.value(opened)), TASK: new})
    if isinstance(new, str) and end is not None and end.kind == 'done' and name_of(path) == ASK:
        reply = REPLY_CODEC.read(await view.value(end))
        return replace(end, value=REPLY_CODEC.write(_with_code(reply, new)))
    msg = f'{view.run} has nothing to change at {path!r}: give an agent or a reply new text, or a call that has ended'
    raise JournalError(msg)


def _with_code(reply: Reply, code: str) -> Reply:
    """A reply as the model would have written it with this code."""
    if reply.calls:
        call = next((call for call in reply.calls if call.name == PYTHON.name), reply.calls[0])
        return replace(reply, calls=(replace(call, name=PYTHON.name, arguments=json.dumps({'code': code})),))
    fence = max(['```', *(mark + '`' for mark in re.findall('`{3,}', code))], key=len)
    prose = parse_reply(reply.text).prose.strip()
    return replace(reply, text=f'{prose}\n\n{fence}python\n{code}\n{fence}'.lstrip())
