"""Names the phase of a run on the live line of the terminal; `run_sync` shows that line in a script."""

import contextlib
import sys
from collections.abc import Generator, Sequence

from habilis.agent.events import (
    AgentEvent,
    ApprovalAnswered,
    ApprovalAsked,
    CellFinished,
    CodeEvent,
    ModelProgress,
    ModelReplied,
    ModelRequested,
    RetryEvent,
    StepStarted,
    TextEvent,
    ThinkingEvent,
    ToolCalled,
    ToolReturned,
)
from habilis.agent.hooks.dispatch import Hook
from habilis.agent.hooks.sanitize import one_line
from habilis.core.settings import Settings
from habilis.core.status_line import StatusLine
from habilis.models.contract import Progress

STARTING = 'starting'
MAX_TOOL_NAME = 40


class RunStatus:
    """Hook that tells a status line what a run is doing."""

    def __init__(self, line: StatusLine) -> None:
        self._line = line
        self._step = 0
        self._tools: dict[tuple[str, int], str] = {}
        """Running tool calls."""

        self._waiting = contextlib.ExitStack()

    def __call__(self, event: AgentEvent) -> None:
        """Show the phase that an event starts. Runs inside tools have lines of their own."""
        if event.parent and not isinstance(event, ApprovalAsked | ApprovalAnswered):
            return
        match event:
            case StepStarted():
                self._step = event.step
            case ToolCalled(call=call):
                self._tools[event.run, call.id] = call.tool
            case ToolReturned(call=call):
                self._tools.pop((event.run, call.id), None)
            case ApprovalAsked():
                self._waiting.enter_context(self._line.paused())
            case ApprovalAnswered():
                self._waiting.close()
            case _:
                pass
        phase = self._phase(event)
        if phase is not None:
            self._line.set_phase(f'step {self._step} · {phase}' if self._step > 1 else phase)

    def _phase(self, event: AgentEvent) -> str | None:
        match event:
            case ModelRequested():
                return 'waiting for the model'
            case ModelProgress(progress=progress):
                return describe_progress(progress)
            case ThinkingEvent():
                return 'thinking'
            case TextEvent():
                return 'writing'
            case RetryEvent():
                return f'retrying: {one_line(event.text, 200)}'
            case ToolCalled() | ToolReturned() if self._tools:
                names = dict.fromkeys(one_line(name, MAX_TOOL_NAME) for name in self._tools.values())
                return f'waiting for {", ".join(names)}'
            case CodeEvent() | ToolReturned():
                return 'running'
            case ModelReplied() | CellFinished():
                return 'working'
            case _:
                return None


def describe_progress(progress: Progress) -> str:
    """How far a model is before it writes."""
    if progress.phase == 'loading':
        return 'loading the model' + (f' {progress.done / progress.total:.0%}' if progress.total else '')
    return 'reading the prompt' + (f' {progress.done:,} of {progress.total:,} tokens' if progress.total else '')


@contextlib.contextmanager
def status_hooks(
    settings: Settings, of_agent: Sequence[Hook], of_run: Sequence[Hook] | None
) -> Generator[Sequence[Hook] | None]:
    """Show a status line on stderr while a script waits for a run. Yields the hooks of the run, and one for the line.

    Nothing is shown where there is no terminal, where the settings say so, and where hooks of the script may print.
    """
    line = StatusLine(sys.stderr)
    hooks = (*of_agent, *(of_run if isinstance(of_run, list | tuple) else ()))
    may_print = [hook for hook in hooks if not type(hook).__module__.startswith('habilis.agent.hooks')]
    if may_print or not settings.status or not line.start(STARTING):
        yield of_run
        return
    try:
        yield (*of_run, RunStatus(line)) if isinstance(of_run, list | tuple) else of_run or (RunStatus(line),)
    finally:
        line.stop()
