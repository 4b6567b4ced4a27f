"""The end of a run: its result, its summary, and a step that its time limit interrupted."""

import asyncio
import logging
import time
from collections.abc import Sequence

from habilis.agent.context.prompt import prompt_file
from habilis.agent.context.truncation import truncate
from habilis.agent.contract import Ended, Result, Step
from habilis.agent.events import AnswerEvent, RunFinished
from habilis.agent.loop.components import Components
from habilis.agent.parsing.replies import parse_reply
from habilis.core.errors import ModelError
from habilis.core.previews import shorten
from habilis.models.contract import Message, Options, Reply

logger = logging.getLogger(__name__)
MAX_ARGUMENT = 200
"""Maximum number of characters of an argument that the model is reminded of."""


async def end_run(
    components: Components, steps: Sequence[Step], ended: Ended, *, output: object = None, question: str | None = None
) -> Result[object]:
    """Build the result, record it, and emit the last events."""
    recorder, events = components.recorder, components.events
    summary, agreement = None, None
    if ended == 'answer' and components.comparison is not None:
        agreement = await components.comparison.compare(output)
        output, question = agreement.output, agreement.question
        ended = 'question' if question is not None else 'answer'
    events.is_muted = recorder is not None and recorder.continues_after(ended)
    if ended == 'answer':
        events.report(AnswerEvent, answer=output)
        if components.summary is not None:
            summary = await _summarize(components, components.summary, steps)
    result = Result(
        output=output if ended == 'answer' else None,
        ended=ended,
        run_id=recorder.journal.run if recorder and recorder.top else components.spec.run_id,
        steps=tuple(steps),
        usage=components.ledger.total,
        usage_by_model=components.ledger.by_model(),
        seconds=components.meter.seconds,
        messages=components.conversation.messages,
        variables=await components.code.values(list(components.spec.variables)) if components.code else {},
        summary=summary,
        question=question,
        waiting=recorder.waiting() if recorder and ended == 'approval' else (),
        scripted=components.scripted,
        agreement=agreement.agreement if agreement else None,
    )
    if recorder is not None:
        await recorder.ended(result, components.answer.output)
    events.report(RunFinished, result=result)
    await events.drain()
    return result


async def _summarize(components: Components, prompt: str, steps: Sequence[Step]) -> str | None:
    """Ask for a summary within what is left of the limits. A failure here does not lose the answer."""
    meter, started = components.meter, time.perf_counter()
    if reached := meter.limit_reached(0, components.ledger.total):
        logger.warning('no summary: the run has reached %s', reached)
        return None
    try:
        async with asyncio.timeout(meter.seconds_left()):
            extra = _summary_prompt(components, prompt, steps)
            reply = await components.model.ask(Options(), extra=extra, code=False)
        return reply.text.strip() or None
    except ModelError as error:
        logger.warning('no summary: %s', error)
    except TimeoutError:
        if not meter.is_time_over():
            raise
        logger.warning('no summary: the run has reached max_seconds')
    finally:
        meter.add(time.perf_counter() - started)
    return None


def _summary_prompt(components: Components, prompt: str, steps: Sequence[Step]) -> str:
    seen = next((step.cell.stdout.strip() for step in steps[-1:] if step.cell), '')
    return f'{prompt}\n\nThe last output was:\n{truncate(seen, components.tools.bounds).text}' if seen else prompt


def timed_out_step(components: Components, reply: Reply, number: int) -> Step:
    """A step that was interrupted by the time limit. The model is told which tools were called, so that it does not
    call them again."""
    calls = tuple(components.toolbox.take_records())
    limit = f'{components.meter.max_seconds or 0:g}'
    lines = [prompt_file('step_timeout').replace('{seconds}', limit), *(['Tools that it had called:'] if calls else [])]
    for call in calls:
        given = ', '.join(f'{name}={shorten(value, MAX_ARGUMENT)}' for name, value in (call.arguments or {}).items())
        lines.append(f'- {call.tool}({given}): {call.result if call.ok else call.error}')
    text = truncate('\n'.join(lines), components.tools.bounds).text
    conversation = components.conversation
    said = conversation.messages
    if reply.message not in said[-1 - len(reply.calls) :]:
        conversation.add(reply.message)
    answered = {message.call_id for message in said if message.role == 'tool'}
    open_calls = [call for call in reply.calls if call.id not in answered]
    for call in open_calls:
        conversation.add(Message(role='tool', text=text, call_id=call.id, call_name=call.name))
    if not open_calls:
        conversation.add(Message(role='user', text=text))
    return Step(number=number, reply=reply, code=parse_reply(reply.text).code, calls=calls, observation=text)
