"""A run as a tree: agents with their steps, calls below their cell, agents and branches below what started them."""

from collections.abc import Iterable, Sequence

from habilis.agent.durable.records import ASK, CELL, COMPACTION, VERDICT
from habilis.agent.durable.trajectory import RecordedStep, Trajectory
from habilis.agent.hooks.questions import is_question
from habilis.agent.hooks.sanitize import one_line
from habilis.agent.parsing.replies import parse_reply
from habilis.cli.printing import COLOURS, Page
from habilis.cli.run.report import count_steps
from habilis.cli.value_text import arguments_text, value_text
from habilis.core.codec import Json
from habilis.core.errors import NotDurable
from habilis.flows.contract import StepStatus
from habilis.journal.index import PathRecords, name_of, parent_of
from habilis.journal.runs import RunView
from habilis.journal.scope import CALL
from habilis.journal.values import plain_value
from habilis.sandbox import ToolCall

MAX_OUTPUT_CHARS = 4000
"""Max characters of a cell's output shown; `--step` shows all."""

MAX_VALUE_CHARS = 300
"""Max characters of the arguments and the result of a call or of a flow's step; `--step` shows all."""

BRANCH = '~'
_OWN_STEPS = frozenset({ASK, CELL, COMPACTION, VERDICT})
"""Steps of an agent that its turns show."""


class RunTree:
    """Prints a run on a page."""

    def __init__(self, page: Page, reading: RunView, agents: Sequence[Trajectory], steps: Sequence[StepStatus]) -> None:
        self._page = page
        self._reading = reading
        self._agents = {trajectory.path: trajectory for trajectory in agents}
        self._steps = {step.path: step for step in steps}
        self._children = _children([path for path, _ in reading.steps()])
        self.truncated = False
        """Whether a value was too long to be shown whole."""

    async def show(self) -> None:
        """Print all of it."""
        for path in self._children.get('', ()):
            if path in self._agents and self._reading.info.kind == 'agent':
                await self._show_agent(self._agents[path], 0)
            else:
                await self._show_inside(path, 2)

    async def _show_inside(self, path: str, indent: int) -> None:
        for child in self._children.get(path, ()):
            await self._show_node(child, indent)

    async def _show_node(self, path: str, indent: int) -> None:
        """A step of a flow, a branch or an agent, with everything inside."""
        if path in self._agents:
            self._line(path, indent, f' · {count_steps(len(self._agents[path].turns))}')
            await self._show_agent(self._agents[path], indent + 2)
            return
        self._line(path, indent, await self._result(path))
        await self._show_inside(path, indent + 2)

    def _line(self, path: str, indent: int, more: str) -> None:
        step, entry = self._steps.get(path), self._reading.index.find(path)
        state = '' if step is None or entry is None or entry.first is None else step.state
        seconds = '' if step is None or step.seconds is None else f' · {step.seconds:.1f} s'
        error = '' if step is None or not step.error else f' · {one_line(step.error, MAX_VALUE_CHARS)}'
        name = f'{_label(path)}{_given(entry)}'
        text = f'{one_line(name, MAX_VALUE_CHARS)}{f": {state}" if state else ""}{seconds}{error}{more}'
        self._page.text(text, COLOURS.get(state, ''), indent=indent)

    async def _result(self, path: str) -> str:
        """What a step has returned."""
        entry = self._reading.index.find(path)
        if entry is None or entry.end is None or entry.end.kind != 'done':
            return ''
        try:
            value = plain_value(await self._reading.value_or_none(entry.end))
        except NotDurable:
            return ''
        return '' if value is None else f' → {self._shorten(value_text(value))}'

    # Agents -----------------------------------------------------------------------------------------------------------

    async def _show_agent(self, trajectory: Trajectory, indent: int) -> None:
        page, inner = self._page, indent or 2
        self._separate(indent)
        page.block('task', trajectory.inputs.task, indent=inner)
        for turn in trajectory.turns:
            self._separate(indent)
            await self.show_turn(turn, indent=indent)
        for path in self._children.get(trajectory.path, ()):
            if name_of(path) not in _OWN_STEPS and path not in _call_paths(trajectory):
                await self._show_node(path, indent)
        if trajectory.result is not None:
            self._separate(indent)
            page.block('answer', value_text(trajectory.result.output), 'bold', indent=inner)
            page.block('summary', trajectory.result.summary or '', indent=inner)

    def _separate(self, indent: int) -> None:
        """An empty line between the steps of the agent of the run; those of inner agents are close together."""
        if not indent:
            self._page.line()

    async def show_turn(self, turn: RecordedStep, *, indent: int = 0, full: bool = False) -> None:
        """One step: messages, reply, each cell with its calls and output, and errors."""
        page, inner = self._page, indent + 2
        page.text(f'step {turn.number} · {turn.seconds:.1f} s', 'bold', indent=indent)
        for text in turn.user_messages:
            page.block('message', text, indent=inner)
        if turn.reply is not None:
            page.block('thinking', turn.reply.thinking if full else '', 'dim', indent=inner)
            page.block('reply', turn.reply.text if full else parse_reply(turn.reply.text).prose, indent=inner)
        calls = list(turn.calls)
        for number, path in enumerate(turn.cell_paths):
            cell = turn.cells[number] if number < len(turn.cells) else None
            page.block('code', turn.unfinished if cell is None else cell.code, 'cyan', indent=inner)
            is_last = number == len(turn.cell_paths) - 1
            own = [call for call in calls if parent_of(call.path) == path or (is_last and call.side == 'code')]
            calls = [call for call in calls if call not in own]
            await self._show_calls(own, inner, full=full)
            if cell is None:
                continue
            output = f'{cell.cell.stdout}{cell.cell.stderr}{cell.cell.text or ""}'
            page.block('output', output if full else _truncate(output), indent=inner)
            if cell.cell.error is not None and not is_question(cell.cell.error.message):
                error = cell.cell.error.traceback if full else str(cell.cell.error)
                page.block('error', error, 'red', indent=inner)
        await self._show_calls(calls, inner, full=full)
        if full or not turn.cells:
            page.block('observation', turn.observation or '', indent=inner)
        page.block('error', turn.error, 'red', indent=inner)

    async def _show_calls(self, calls: Iterable[ToolCall], indent: int, *, full: bool) -> None:
        """Calls, and below each the agents and steps that its tool has run."""
        for call in calls:
            arguments = '…' if call.arguments is None else arguments_text(call.arguments)
            end = 'asked' if is_question(call.error) else f'failed: {call.error}' if call.error else call.result
            text = f'{call.tool}({arguments}){f" → {end}" if end else ""}'
            decision = '' if call.decision == 'allowed' else f'  ({call.decision})'
            self._page.text(f'call  {text if full else self._shorten(text)}{decision}', indent=indent)
            if call.path:
                await self._show_inside(call.path, indent + 2)

    def _shorten(self, text: str) -> str:
        short = one_line(text, MAX_VALUE_CHARS)
        self.truncated = self.truncated or (short.endswith('…') and not text.endswith('…'))
        return short


def _children(paths: Iterable[str]) -> dict[str, list[str]]:
    """The paths inside of each path, in the order in which they started. A branch has no record of its own."""
    found: dict[str, dict[str, None]] = {}
    for each in paths:
        path = each
        while path:
            found.setdefault(parent_of(path), {}).setdefault(path)
            path = parent_of(path)
    return {parent: list(inside) for parent, inside in found.items()}


def _call_paths(trajectory: Trajectory) -> set[str]:
    return {call.path for turn in trajectory.turns for call in turn.calls}


def _label(path: str) -> str:
    """The last name of a path, without the digest of its arguments: `fetch#1`, `branch 2`."""
    name = path.rpartition('/')[2]
    if name.startswith(BRANCH):
        return f'branch {name.removeprefix(BRANCH)}'
    before, bracket, after = name.partition('(')
    return f'{before}{after.rpartition(")")[2]}' if bracket else name


def _given(entry: PathRecords | None) -> str:
    """The arguments of a step, if they were recorded."""
    opened = None if entry is None else entry.started or entry.opened
    value: Json = None if opened is None else opened.value
    call = value.get(CALL) if isinstance(value, dict) else None
    return f' {call[call.index("(") :]}' if isinstance(call, str) and '(' in call else ''


def _truncate(text: str) -> str:
    """The start and the end of a long text."""
    if len(text) <= MAX_OUTPUT_CHARS:
        return text
    half = MAX_OUTPUT_CHARS // 2
    omitted = f'… {len(text) - MAX_OUTPUT_CHARS:,} characters omitted; use --step to show them …'
    return f'{text[:half]}\n{omitted}\n{text[-half:]}'
