"""Each kind of event is a class with typed fields of its own."""

from typing import assert_type, get_args

from habilis.agent.events import (
    AgentEvent,
    CodeEvent,
    Event,
    ModelReplied,
    RetryEvent,
    RunFailed,
    ToolCalled,
    ToolReturned,
)
from habilis.core.errors import ModelError
from habilis.models.contract import Reply
from habilis.models.retry import RetryNotice
from habilis.sandbox.contract import ToolCall
from habilis.tools.contract import GateCall
from tests.agent.hooks.samples import SAMPLES, sample
from tests.cases import each_case

CLASSES: tuple[type[Event], ...] = get_args(AgentEvent)

SHORT = {'step_started', 'step_finished', 'approval_answered', 'run_finished', 'model_progress'}
"""Their text is not words of the model, the code or a tool."""


def test_the_union_has_every_event_class() -> None:
    later = ('habilis.assistant.',)  # a room above this one adds its own
    assert set(CLASSES) == {event for event in Event.__subclasses__() if not event.__module__.startswith(later)}
    assert SAMPLES.keys() == {event.kind for event in CLASSES}
    assert len(SAMPLES) == len(CLASSES)


@each_case('event', CLASSES)
def test_a_class_is_named_after_its_kind(event: type[Event]) -> None:
    words = event.kind.split('_')
    assert event.__name__ == ''.join(word.title() for word in words) + ('Event' if len(words) == 1 else '')


@each_case('kind', SAMPLES)
def test_an_event_has_a_kind_and_a_text_and_no_untyped_data(kind: str) -> None:
    event = sample(kind, 'hello')
    assert event.kind == kind
    assert 'hello' in event.text or kind in SHORT
    assert not hasattr(event, 'data')


@each_case('kind', SAMPLES)
def test_a_printed_event_is_one_short_line(kind: str) -> None:
    event = sample(kind, 'word\n' * 10_000)
    assert repr(event).startswith(f'{type(event).__name__}(')
    assert len(repr(event)) < 600
    assert '\n' not in repr(event)


def test_a_printed_event_has_its_step_and_its_content() -> None:
    assert repr(CodeEvent(step=2, run='r', agent='a', code='print(1)')) == "CodeEvent(step=2, code='print(1)')"


def test_type_checkers_know_the_fields_by_class_and_by_kind() -> None:
    def read(event: AgentEvent) -> str:
        match event:
            case ToolCalled(call=call):
                assert_type(call, GateCall)
                return call.tool
            case ToolReturned(call=call):
                assert_type(call, ToolCall)
                return call.tool
            case ModelReplied(reply=reply):
                assert_type(reply, Reply)
                return reply.text
            case _:
                pass
        if event.kind == 'code':
            assert_type(event, CodeEvent)
            return event.code
        return ''

    assert [read(sample(kind, 'x')) for kind in ('tool_called', 'tool_returned', 'model_replied', 'code', 'text')] == [
        'x', 'x', 'x', 'x', ''
    ]  # fmt: skip


def test_the_text_of_a_retry_says_why_and_when() -> None:
    event = RetryEvent(notice=RetryNotice(attempt=1, max_attempts=3, seconds=0.5, error=ModelError('busy')))
    assert event.text == 'busy; retrying in 0.5 s (attempt 1 of 3)'


def test_the_text_of_an_error_without_a_message_is_its_class() -> None:
    assert RunFailed(error=KeyboardInterrupt()).text == 'KeyboardInterrupt'
    assert RunFailed(error=ModelError('no')).text == 'ModelError: no'
