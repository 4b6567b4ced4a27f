"""What a turn has to do and who works on it: the todo list, and one row per subagent, which can be opened later."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from habilis.agent.events import (
    AgentEvent,
    NoticeEvent,
    RunFailed,
    RunFinished,
    RunResumed,
    RunStarted,
    StepFinished,
    ToolCalled,
    ToolReturned,
)
from habilis.agent.hooks.inner_runs import InnerRuns
from habilis.agent.hooks.sanitize import one_line
from habilis.agent.hooks.tokens import format_cost
from habilis.tools.toolsets.todo import TODO_WRITE, TodoItem, todo_items, todo_text

MAX_TODO_ROWS = 6
MAX_AGENT_ROWS = 4
MAX_LINES = 1000
"""Lines that are kept of a subagent."""

MAX_TASK = 40


@dataclass(kw_only=True)
class Subagent:
    """A run inside a turn, with those inside of it."""

    number: int
    name: str
    began: float = field(default_factory=time.monotonic)
    seconds: float | None = None
    """None while it works."""

    steps: int = 0
    cost: float = 0.0
    lines: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """One line about it."""
        seconds = time.monotonic() - self.began if self.seconds is None else self.seconds
        parts = [self.name, f'{self.steps} step{"" if self.steps == 1 else "s"}', f'{seconds:.0f} s']
        return ' · '.join([*parts, *([format_cost(self.cost)] if self.cost else [])])


class TurnProgress:
    """The todo list and the subagents of a chat."""

    def __init__(self) -> None:
        self.todo: Sequence[TodoItem] = ()
        self.agents: list[Subagent] = []
        """All of the chat; the number of the first one is 1."""

        self._at_work: dict[str, Subagent] = {}
        """By the id of the run."""

        self._inner = InnerRuns()

    def start(self) -> None:
        """A turn starts: a list that is done is put away."""
        self._at_work.clear()
        if all(item['status'] == 'completed' for item in self.todo):
            self.todo = ()

    def take(self, event: AgentEvent) -> str | None:
        """What to print of an event that is shown here; None if it is not one of them."""
        if event.parent:
            return self._take_inner(event)
        if isinstance(event, ToolReturned) and (items := todo_items(event.call)) is not None:
            self.todo = items
            return ''
        return '' if isinstance(event, ToolCalled) and event.call.tool == TODO_WRITE else None

    def _take_inner(self, event: AgentEvent) -> str:
        agent = self._at_work.get(event.run) or self._at_work.get(event.parent)
        if agent is None:
            task = event.task if isinstance(event, RunStarted | RunResumed) else ''
            name = f'{one_line(event.agent, MAX_TASK)}: {one_line(task, MAX_TASK)}'.removesuffix(': ')
            agent = Subagent(number=len(self.agents) + 1, name=name)
            self.agents.append(agent)
        self._at_work[event.run] = agent
        line = self._inner.line(event)
        if line is not None and len(agent.lines) < MAX_LINES:
            text, _, indent = line
            agent.lines.append(f'{indent}{one_line(text, 300)}')
        if isinstance(event, StepFinished):
            agent.steps += 1
            agent.cost += event.finished.reply.usage.cost or 0.0
        if isinstance(event, RunFinished | RunFailed):
            del self._at_work[event.run]
            if agent not in self._at_work.values():
                agent.seconds = time.monotonic() - agent.began
                mark = '✗' if isinstance(event, RunFailed) else '▸'
                return f'{mark} {agent.text} · /show {agent.number}'
        return event.text if isinstance(event, NoticeEvent) else ''

    def rows(self) -> list[str]:
        """What is shown while the turn is under way."""
        agents = list(dict.fromkeys(agent.number for agent in self._at_work.values()))
        rows = [f'▸ {self.agents[number - 1].text}' for number in agents[:MAX_AGENT_ROWS]]
        if len(agents) > MAX_AGENT_ROWS:
            rows.append(f'… {len(agents) - MAX_AGENT_ROWS} more at work')
        return [*rows, *self._todo_rows()]

    def _todo_rows(self) -> list[str]:
        """The list; of a long one the part that is being done."""
        items = list(self.todo)
        if len(items) <= MAX_TODO_ROWS:
            return [one_line(todo_text(item), 200) for item in items]
        now = next((at for at, item in enumerate(items) if item['status'] != 'completed'), 0)
        first = max(0, min(now - 1, len(items) - MAX_TODO_ROWS + 1))
        shown = items[first : first + MAX_TODO_ROWS - 1]
        done = sum(item['status'] == 'completed' for item in items)
        return [*(one_line(todo_text(item), 200) for item in shown), f'… {done} of {len(items)} done: /todo']
