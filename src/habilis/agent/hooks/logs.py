"""Logs events with Python's logging."""

import logging
from typing import Final

from habilis.agent.contract import Result
from habilis.agent.events import (
    AgentEvent,
    AnswerEvent,
    AnswerRefused,
    ApprovalAnswered,
    ApprovalAsked,
    ApprovalUsed,
    CellFinished,
    CompactedEvent,
    Event,
    HookFailed,
    ModelReplied,
    NoticeEvent,
    QuestionEvent,
    RetryEvent,
    RunFailed,
    RunFinished,
    RunResumed,
    RunStarted,
    StepFinished,
    ToolCalled,
    ToolLogged,
    ToolReturned,
)
from habilis.agent.hooks.sanitize import one_line
from habilis.agent.hooks.tokens import format_cost
from habilis.core.secrets import redact
from habilis.models.contract import Usage

LENGTH = 200
"""Maximum number of characters of a message."""

_LEVELS: Final[dict[type[Event], int]] = {
    RunStarted: logging.INFO,
    ApprovalAsked: logging.INFO,
    ApprovalAnswered: logging.INFO,
    ApprovalUsed: logging.INFO,
    QuestionEvent: logging.INFO,
    NoticeEvent: logging.INFO,
    AnswerRefused: logging.INFO,
    CompactedEvent: logging.INFO,
    RetryEvent: logging.WARNING,
    HookFailed: logging.WARNING,
    StepFinished: logging.INFO,
    AnswerEvent: logging.INFO,
    RunFinished: logging.INFO,
    RunFailed: logging.ERROR,
}
"""Level by event; all others are logged at DEBUG."""


class LogEvents:
    """Logs one short line per event, without API keys.

    Nothing is shown until the program configures logging and a level: `LOG_LEVEL=agent=info`.
    """

    def __init__(self, logger: str | logging.Logger = 'habilis.agent') -> None:
        """Log to this logger, given by name or as an object."""
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger

    def __call__(self, event: AgentEvent) -> None:
        """Log an event."""
        level = level_of(event)
        if self._logger.isEnabledFor(level):
            # Redacted before it is truncated: a truncated key is not recognized.
            details = one_line(redact(_details(event)), LENGTH)
            self._logger.log(
                level, '%s', ' '.join(filter(None, (_source(event), details))), extra={'event': event.kind}
            )


def level_of(event: AgentEvent) -> int:
    """Log level of an event."""
    if isinstance(event, ToolReturned) and not event.call.ok:
        return logging.INFO
    return _LEVELS.get(type(event), logging.DEBUG)


def _source(event: AgentEvent) -> str:
    step = f' step {event.step}' if event.step else ''
    return one_line(f'{event.run} {event.agent}{step}: {event.kind}', LENGTH)


def _details(event: AgentEvent) -> str:
    match event:
        case RunStarted(model=model) | RunResumed(model=model):
            return f'{model.name}{" (scripted)" if model.traits.scripted else ""}: {event.text}'
        case ModelReplied(reply=reply):
            return f'{reply.model}: {_format_usage(reply.usage)}'
        case ToolCalled(call=call) | ToolLogged(call=call) | QuestionEvent(call=call) | NoticeEvent(call=call):
            return f'{call.tool} with {", ".join(call.arguments) or "nothing"}'
        case ToolReturned(call=call):
            return f'{call.tool}: {call.error or "ok"} after {call.seconds:.2f} s'
        case CellFinished(cell=cell):
            return f'{cell.error or "ok"} after {cell.seconds:.2f} s'
        case StepFinished(finished=step):
            return f'{step.seconds:.2f} s'
        case RunFinished(result=result):
            return _format_result(result)
        case _:
            return event.text


def _format_result(result: 'Result[object]') -> str:
    return f'{result.ended} after {len(result.steps)} steps, {result.seconds:.2f} s, {_format_usage(result.usage)}'


def _format_usage(usage: Usage) -> str:
    cost = f', {format_cost(usage.cost)}' if usage.cost else ''
    return f'{usage.input_tokens:,} + {usage.output_tokens:,} tokens in {usage.seconds:.2f} s{cost}'
