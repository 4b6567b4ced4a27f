"""The status line names what a run is doing."""

from dataclasses import replace

import pytest

from habilis.agent.events import AgentEvent, ModelProgress, StepStarted
from habilis.agent.hooks.status import RunStatus
from habilis.core.status_line import StatusLine
from habilis.models.contract import Progress
from tests.agent.hooks.samples import sample


class Line(StatusLine):
    """Keeps the phases that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.phases: list[str] = []

    def set_phase(self, phase: str) -> None:
        self.phases.append(phase)


def phases(*events: AgentEvent) -> list[str]:
    line = Line()
    status = RunStatus(line)
    for event in events:
        status(event)
    return line.phases


@pytest.mark.parametrize(
    ('progress', 'phase'),
    [
        (Progress(phase='loading'), 'loading the model'),
        (Progress(phase='loading', done=1, total=4), 'loading the model 25%'),
        (Progress(phase='reading', done=512, total=2048), 'reading the prompt 512 of 2,048 tokens'),
        (Progress(phase='reading'), 'reading the prompt'),
    ],
)
def test_what_a_model_does_before_it_writes(progress: Progress, phase: str) -> None:
    assert phases(ModelProgress(progress=progress)) == [phase]


def test_the_phases_of_a_step() -> None:
    events = [
        sample(kind, 'x\x1b[2J')
        for kind in ('model_requested', 'thinking', 'text', 'code', 'tool_called', 'tool_returned', 'cell_finished')
    ]
    assert phases(*events) == [
        'waiting for the model',
        'thinking',
        'writing',
        'running',
        r'waiting for x\x1b[2J',
        'running',
        'working',
    ]


def test_later_steps_are_numbered_and_a_retry_says_why() -> None:
    second = replace(StepStarted(), step=2)
    [phase] = phases(second, sample('retry', 'busy'))
    assert phase == 'step 2 · retrying: busy; retrying in 1.0 s (attempt 2 of 4)'


def test_the_line_is_silent_until_an_approval_is_answered() -> None:
    line = Line()
    status = RunStatus(line)
    status(sample('approval_asked', 'x'))
    assert line._pauses == 1  # pyright: ignore[reportPrivateUsage]
    status(sample('approval_answered', 'x'))
    assert line._pauses == 0  # pyright: ignore[reportPrivateUsage]
