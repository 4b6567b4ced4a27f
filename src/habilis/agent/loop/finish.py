"""How a run ends: its result, its summary, and what is kept of a step that its time limit has cut off."""

import asyncio
import logging
import time
from collections.abc import Sequence

from habilis.agent.contract import Ended, Result, Step
from habilis.agent.context.truncation import cut
from habilis.agent.context.output import as_text
from habilis.agent.parsing.replies import parse_reply
from habilis.agent.loop.components import Parts
from habilis.agent.context.prompt import prompt_file
from habilis.core.errors import ModelError
from habilis.core.events import Event
from habilis.models.contract import Message, Options, Reply
from habilis.sandbox.previews import shorten

logger = logging.getLogger(__name__)
LENGTH = 200
"""Characters of an argument that the model is reminded of."""


async def end_run(
    parts: Parts, steps: Sequence[Step], ended: Ended, *, output: object = None, question: str | None = None
) -> Result[object]:
    """Put the result together, write it down, and tell everyone."""
    recorder = parts.recorder
    parts.watchers.muted = recorder is not None and recorder.behind
    summary = None
    if ended == 'answer':
        parts.watchers.emit(Event(kind='answer', text=as_text(output), data=output))
        if parts.summary is not None:
            summary = await _summary(parts, parts.summary, steps)
    variables = await parts.actor.values(list(parts.variables)) if parts.actor else {}
    result = Result(
        output=output,
        ended=ended,
        run_id=recorder.journal.run if recorder and recorder.top else parts.run_id,
        steps=tuple(steps),
        usage=parts.ledger.total,
        usage_by_model=parts.ledger.by_model(),
        seconds=parts.meter.seconds,
        messages=parts.conversation.messages,
        variables=variables,
        summary=summary,
        question=question,
        waiting=recorder.waiting() if recorder and ended == 'approval' else (),
        scripted=parts.scripted,
    )
    if recorder is not None:
        await recorder.ended(result, parts.output)
    parts.watchers.emit(Event(kind='run_finished', text=ended, data=result))
    await parts.watchers.drain()
    return result


async def _summary(parts: Parts, prompt: str, steps: Sequence[Step]) -> str | None:
    """One more request, within what is left of the limits. The answer is there: nothing that fails here takes it."""
    meter, started = parts.meter, time.perf_counter()
    if reached := meter.used_up(0, parts.ledger.total):
        logger.warning('there is no summary: the run has reached %s', reached)
        return None
    try:
        async with asyncio.timeout(meter.seconds_left()):
            reply = await parts.asker.ask(Options(), extra=_about(parts, prompt, steps), code=False)
        return reply.text.strip() or None
    except ModelError as error:
        logger.warning('there is no summary: %s', error)
    except TimeoutError:
        if not meter.time_is_up():
            raise
        logger.warning('there is no summary: the run has reached max_seconds')
    finally:
        meter.add(time.perf_counter() - started)
    return None


def _about(parts: Parts, prompt: str, steps: Sequence[Step]) -> str:
    seen = next((step.cell.stdout.strip() for step in steps[-1:] if step.cell), '')
    bounds = parts.actor.bounds if parts.actor else parts.caller.bounds
    return f'{prompt}\n\nThe last output was:\n{cut(seen, bounds).text}' if seen else prompt


def cut_off(parts: Parts, reply: Reply, number: int) -> Step:
    """A step that was not finished in time: the model is told what was done, so that it is not done again."""
    calls = tuple(parts.toolbox.take_records())
    lines = [prompt_file('cut_off')]
    for call in calls:
        given = ', '.join(f'{name}={shorten(value, LENGTH)}' for name, value in call.arguments.items())
        lines.append(f'- {call.name}({given}): {call.result if call.ok else call.error}')
    if calls:
        lines.insert(1, 'Tools that it had called:')
    bounds = parts.actor.bounds if parts.actor else parts.caller.bounds
    text = cut('\n'.join(lines), bounds).text
    said = parts.conversation.messages
    if reply.message not in said[-1 - len(reply.calls) :]:
        parts.conversation.add(reply.message)
    answered = {message.call_id for message in said if message.role == 'tool'}
    open_calls = [call for call in reply.calls if call.id not in answered]
    for call in open_calls:
        parts.conversation.add(Message(role='tool', text=text, call_id=call.id, call_name=call.name))
    if not open_calls:
        parts.conversation.add(Message(role='user', text=text))
    return Step(number=number, reply=reply, code=parse_reply(reply.text).code, calls=calls, observation=text)
