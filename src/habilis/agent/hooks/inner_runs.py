"""Runs inside the tools of another run, in the terminal: whole lines below their parent, as several may be at work."""

from dataclasses import dataclass

from habilis.agent.events import (
    AgentEvent,
    ApprovalAsked,
    NoticeEvent,
    RetryEvent,
    RunFailed,
    RunFinished,
    RunResumed,
    RunStarted,
    StepFinished,
    ToolCalled,
    ToolReturned,
)
from habilis.agent.hooks.sanitize import one_line
from habilis.agent.hooks.tokens import format_cost

MAX_NAME = 40


@dataclass(frozen=True, kw_only=True)
class _InnerRun:
    label: str
    depth: int


class InnerRuns:
    """Names inner runs, and describes what happens in them. Runs with the same name are numbered."""

    def __init__(self) -> None:
        self._runs: dict[str, _InnerRun] = {}
        self._count: dict[tuple[str, str], int] = {}

    def line(self, event: AgentEvent) -> tuple[str, str, str] | None:
        """One line about an event of an inner run, its style and its indent; None if it is not worth one."""
        run = self._runs.get(event.run) or self._add(event)
        described = _describe(event)
        if isinstance(event, RunFinished | RunFailed):
            self._runs.pop(event.run, None)
        if described is None:
            return None
        text, style = described
        return f'{run.label} · {text}', style, '  ' * run.depth

    def forget(self, parent: str) -> None:
        """The parent has ended: its next inner runs are numbered from 1."""
        self._count = {key: count for key, count in self._count.items() if key[0] != parent}

    def _add(self, event: AgentEvent) -> _InnerRun:
        name, around = one_line(event.agent, MAX_NAME), self._runs.get(event.parent)
        number = self._count[event.parent, name] = self._count.get((event.parent, name), 0) + 1
        run = _InnerRun(label=f'{name} {number}', depth=1 if around is None else around.depth + 1)
        self._runs[event.run] = run
        return run


def _describe(event: AgentEvent) -> tuple[str, str] | None:
    match event:
        case RunStarted(task=task) | RunResumed(task=task):
            verb = 'starts' if isinstance(event, RunStarted) else 'goes on'
            return f'{verb}: {task}', 'cyan'
        case StepFinished(finished=step):
            error = None if step.cell is None else step.cell.error
            done = (step.code or step.reply.text).strip() if error is None else f'failed: {error}'
            return f'step {step.number} · {step.seconds:.1f} s · {done}', 'dim' if error is None else 'yellow'
        case ToolCalled(call=call):
            return f'→ {call.tool}({", ".join(call.arguments)})', 'dim'
        case ToolReturned(call=call) if not call.ok:
            return f'← {call.tool} failed: {call.error}', 'yellow'
        case ApprovalAsked() | NoticeEvent() | RetryEvent():
            return event.text, 'magenta'
        case RunFinished(result=result):
            ended = 'done' if result.ended == 'answer' else f'stopped: {result.ended}'
            count = f'{len(result.steps)} step{"" if len(result.steps) == 1 else "s"}'
            cost = '' if result.cost is None else f' · {format_cost(result.cost)}'
            text = f'{ended} · {count} · {result.seconds:.1f} s · {result.usage.tokens:,} tokens{cost}'
            return text, 'green' if result.ended == 'answer' else 'yellow'
        case RunFailed():
            return f'failed: {event.text}', 'red'
        case _:
            return None
