"""Events of a turn that open streams get beside the records of the journal."""

from habilis.agent import events
from habilis.assistant import SessionEvent, TurnEnded, TurnStarted
from habilis.core.codec import Json

LIVE = (
    events.StepStarted,
    events.ModelProgress,
    events.TextEvent,
    events.ThinkingEvent,
    events.RetryEvent,
    events.CodeEvent,
    events.OutputEvent,
    events.ToolLogged,
    events.ToolProgress,
    events.NoticeEvent,
    events.CompactedEvent,
    TurnStarted,
    TurnEnded,
)
"""What the journal does not have, or has only at the end of a step."""


def live_json(event: SessionEvent) -> Json:
    """An event for the streams of its run."""
    known: dict[str, Json] = {'kind': event.kind, 'run': event.run, 'step': event.step, 'text': event.text}
    if event.parent:
        known |= {'parent': event.parent, 'agent': event.agent}
    if isinstance(event, events.OutputEvent):
        known['stream'] = event.stream
    if isinstance(event, TurnEnded) and event.error is not None:
        known['error'] = str(event.error) or type(event.error).__name__
    return known
