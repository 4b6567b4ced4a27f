"""Events as records of Python's own logging."""

import logging
from typing import Final, cast

from habilis.agent.contract import Result, Step
from habilis.agent.hooks.sanitize import one_line
from habilis.agent.hooks.tokens import money
from habilis.core.events import Event, EventKind
from habilis.core.logs import redact
from habilis.models.contract import Model, Reply, Usage
from habilis.sandbox.contract import Cell, ToolCall
from habilis.tools.contract import GateCall

LENGTH = 200
"""Of a message, in characters."""

_LEVELS: Final[dict[EventKind, int]] = {
    'run_started': logging.INFO,
    'approval_asked': logging.INFO,
    'approval_answered': logging.INFO,
    'question': logging.INFO,
    'notice': logging.INFO,
    'compacted': logging.INFO,
    'retry': logging.WARNING,
    'hook_failed': logging.WARNING,
    'step_finished': logging.INFO,
    'answer': logging.INFO,
    'run_finished': logging.INFO,
    'run_failed': logging.ERROR,
}
"""Every other kind is for debugging."""


class LogEvents:
    """Logs one record per event: one short line, and never a key.

    Nothing is shown until the program sets up logging and a level: `LOG_LEVEL=agent=info`.
    """

    def __init__(self, logger: str | logging.Logger = 'habilis.agent') -> None:
        """Log there, by name or by logger."""
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger

    def __call__(self, event: Event) -> None:
        """Log it."""
        level = level_of(event)
        if self._logger.isEnabledFor(level):
            # Redacted before it is cut: half a key looks like none.
            said = one_line(redact(_said(event)), LENGTH)
            self._logger.log(level, '%s', ' '.join(filter(None, (_who(event), said))), extra={'event': event.kind})


def level_of(event: Event) -> int:
    """The level at which it is logged."""
    if isinstance(event.data, ToolCall) and not event.data.ok:
        return logging.INFO
    return _LEVELS.get(event.kind, logging.DEBUG)


def _who(event: Event) -> str:
    step = f' step {event.step}' if event.step else ''
    return one_line(f'{event.run} {event.agent}{step}: {event.kind}', LENGTH)


def _said(event: Event) -> str:
    """What there is to say about it, beside its kind."""
    match event.data:
        case Reply() as reply:
            return f'{reply.model}: {_used(reply.usage)}'
        case Step() as step:
            return f'{step.seconds:.2f} s'
        case Result():
            return _ended(cast('Result[object]', event.data))
        case Cell() as cell:
            return f'{cell.error or "ok"} after {cell.seconds:.2f} s'
        case GateCall() as call:
            return f'{call.tool} with {", ".join(call.arguments) or "nothing"}'
        case ToolCall() as record:
            return f'{record.name}: {record.error or "ok"} after {record.seconds:.2f} s'
        case Model() as model:
            return f'{model.name}{" (scripted)" if model.traits.scripted else ""}: {event.text}'
        case _:
            return event.text


def _ended(result: 'Result[object]') -> str:
    return f'{result.ended} after {len(result.steps)} steps, {result.seconds:.2f} s, {_used(result.usage)}'


def _used(usage: Usage) -> str:
    cost = f', {money(usage.cost)}' if usage.cost else ''
    return f'{usage.input_tokens:,} + {usage.output_tokens:,} tokens in {usage.seconds:.2f} s{cost}'
