"""Running the model's code, and putting together what it sees of it."""

import functools
import keyword
import logging
import unicodedata
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from habilis.agent.loop.limits import Meter
from habilis.agent.context.truncation import Bounds
from habilis.agent.policies.hints import hints_for
from habilis.agent.context.observation import observe
from habilis.agent.context.output import OutputType, WrongOutput, literal
from habilis.agent.parsing.imports import missing_imports
from habilis.agent.parsing.shadows import without_shadows
from habilis.agent.durable.recorder import Recorder
from habilis.agent.durable.codecs import DataCodec
from habilis.agent.loop.sandboxes import MOVING, Rooms
from habilis.agent.hooks.dispatch import Watchers
from habilis.core.errors import AgentError, SandboxClosed, SandboxError
from habilis.core.events import Event
from habilis.sandbox.contract import Cell, Stream, Variable
from habilis.sandbox.functions import HostFunction
from habilis.sandbox.contract import ToolCall
from habilis.tools import Toolbox

logger = logging.getLogger('habilis.agent')

FINAL_ANSWER = 'final_answer'
ARTIFACTS = 'artifacts'
_NEEDED: Mapping[str, str] = {
    FINAL_ANSWER: 'code gives its answer with it',
    ARTIFACTS: 'the documents of a step are there',
    'print': 'code shows with it what it finds',
}


@dataclass(frozen=True, kw_only=True)
class Acted:
    """What came of one piece of code: all that the run needs to know of it, so that it need not be run again."""

    code: str
    cell: Cell
    calls: tuple[ToolCall, ...] = ()
    observation: str = ''
    known: Mapping[str, Variable] = field(default_factory=dict[str, Variable])
    """The variables there are now."""

    answered: bool = False
    answer: object = None
    """What `final_answer` was given, if it was called."""

    question: str | None = None
    """What a tool needs a person to answer."""

    refused_none: bool = False
    """See `StopTool`."""

    @property
    def shown(self) -> str:
        """What it printed, and its value."""
        return f'{self.cell.stdout}{self.cell.text or ""}'


ACTED = DataCodec(Acted, what='a cell')


class StopTool:
    """`final_answer` as the code calls it. The first value that is right is the answer."""

    def __init__(self, output: OutputType) -> None:
        self._output = output
        self.given = False
        self.value: object = None
        self.raw: object = None
        """As the code gave it."""

        self.refused_none = False
        """Whether it was given None before: the first time may be a mistake."""

    def __call__(self, *values: object, **named: object) -> None:
        """Take the answer, by whatever name it is given, or say what is wrong with it."""
        if len(values) + len(named) != 1:
            msg = 'final_answer takes one value: final_answer(value). Put several into a list or a dict.'
            raise WrongOutput(msg)
        [answer] = (*values, *named.values())
        if answer is None and not self.refused_none and not self._output.takes_none:
            self.refused_none = True
            msg = 'final_answer got None. Pass the value itself, not the result of print(...).'
            raise WrongOutput(msg)
        if not self.given:
            self.take(answer)
        else:
            self._output.check(answer)

    def take(self, answer: object) -> None:
        """This is the answer. Raises `WrongOutput`."""
        self.value = self._output.check(answer)
        self.given, self.raw = True, answer

    def take_shown(self, cell: Cell) -> bool:
        """What a cell showed becomes the answer, if it is of the right type."""
        try:
            if cell.text is not None:
                self.value = self._output.check(cell.value if cell.value is not None else cell.text)
            elif self._output.kind is None:
                self.value = literal(cell.stdout)
            else:
                self.value = self._output.check_text(cell.stdout.strip())
        except WrongOutput:
            return False
        self.given = True
        return True

    @property
    def function(self) -> HostFunction:
        """What the sandbox gets."""
        return HostFunction(
            name=FINAL_ANSWER,
            call=self,
            is_async=False,
            parameters=('value',),
            signature='(value)',
            doc='Give the answer and end the task.',
        )


class Actor:
    """Runs code in one sandbox for one run."""

    def __init__(
        self,
        rooms: Rooms,
        toolbox: Toolbox,
        stop: StopTool,
        watchers: Watchers,
        bounds: Bounds,
        meter: Meter,
        *,
        small: bool,
        recorder: Recorder | None = None,
    ) -> None:
        self._rooms = rooms
        self._sandbox = rooms.main
        self._recorder = recorder
        self._toolbox = toolbox
        self._stop = stop
        self._watchers = watchers
        self._known: Mapping[str, Variable] = {}
        self._given: tuple[str, ...] = ()
        self._small = small
        self._meter = meter
        self._lost: set[str] = set()
        """Variables that did not come back when the run was resumed."""

        self._live = False
        """Whether the last cell was run, and not answered from the record."""

        self.bounds = bounds

    async def begin(self, variables: Mapping[str, object]) -> list[Variable]:
        """Put the user's variables in, and describe them."""
        self._given = tuple(variables)
        if variables:
            await self._sandbox.set_variables(variables)
        self._known = await self._variables()
        return [variable for name, variable in self._known.items() if name in variables]

    async def act(self, code: str, *, number: int, can_stop: bool) -> Acted:
        """Run one piece of code."""
        functions = [*self._toolbox.functions(), *([self._stop.function] if can_stop else [])]
        texts = [name for name in self._given if name in self._known and self._known[name].type == 'str']
        written = code
        code = without_shadows(written, {function.name for function in functions}, texts if self._small else ())
        run = functools.partial(self._run, code, functions, texts, number=number, can_stop=can_stop)
        if self._recorder is None:
            acted = await run()
        else:
            acted = await self._recorder.cell(written, run, ACTED, snapshot=self._snapshots, stop=self._halt)
            await self._remember(acted)
        self._known, self._stop.refused_none = acted.known, acted.refused_none
        if acted.answered and not self._stop.given:  # from the record
            self._stop.take(acted.answer)
        return acted

    async def _run(
        self, code: str, functions: Sequence[HostFunction], texts: Sequence[str], *, number: int, can_stop: bool
    ) -> Acted:
        self._live = True
        await self.catch_up()
        self._watchers.go_live()
        self._watchers.emit(Event(kind='code', text=code))
        if imports := missing_imports(code, [*self._known, *(function.name for function in functions)]):
            await self._sandbox.run('\n'.join(imports))
        on_output = self._tell if self._watchers.anyone else None  # each piece of output wakes the event loop
        try:
            cell = await self._sandbox.run(code, on_output=on_output, tools=functions, describe=True)
        finally:
            self._toolbox.cancel()  # what a cell that was stopped has left waiting, for a person perhaps
        self._watchers.emit(Event(kind='cell_finished', text=cell.text or '', data=cell))
        known = await self._variables()
        calls = tuple(self._toolbox.take_records())  # by now also of those that were stopped with the cell
        names = [*known, *(function.name for function in functions)]
        seen = observe(
            cell,
            number=number,
            bounds=self.bounds,
            taken=names,
            new=[variable for name, variable in known.items() if self._known.get(name) != variable],
            calls=calls,
            hints=hints_for(code, cell, names=names, texts=texts, can_stop=can_stop, lost=self._lost, calls=calls),
        )
        if seen.kept:
            await self._sandbox.set_variables(seen.kept)
        return Acted(
            code=code,
            cell=cell,
            calls=calls,
            observation=seen.text,
            known=known,
            answered=self._stop.given,
            answer=self._stop.raw if self._stop.given else None,
            question=self._toolbox.take_question(),
            refused_none=self._stop.refused_none,
        )

    async def _remember(self, acted: Acted) -> None:
        """Calls that are from the record are told to those who did not see them."""
        if self._live:
            self._live = False
            return
        for call in acted.calls:
            self._meter.recall(call)
            if call.name not in MOVING:  # whose work is in the snapshots
                await self._toolbox.remember(call)

    async def catch_up(self) -> None:
        """Bring the variables of the record into the sandboxes, before they are used."""
        if self._recorder is not None:
            for name, data in (await self._recorder.snapshots()).items():
                sandbox = self._rooms.everyone[name]
                await sandbox.load_snapshot(data)
                if sandbox.lost:
                    self._lost |= set(sandbox.lost)
                    logger.warning('not brought back, because they could not be saved: %s', ', '.join(sandbox.lost))

    async def _snapshots(self) -> dict[str, bytes]:
        """The variables as they are. What cannot be saved makes a sandbox go back to those it had before."""
        found: dict[str, bytes] = {}
        for name, sandbox in self._rooms.everyone.items():
            try:
                found[name] = await sandbox.snapshot()
            except SandboxError as error:
                logger.warning('the variables of the sandbox %s were not recorded: %s', name, error)
        return found

    def _halt(self) -> None:
        """Stop the cell now, and let go of the thread that waits for one of its calls."""
        self._sandbox.cancel()
        self._toolbox.cancel()

    async def _variables(self) -> dict[str, Variable]:
        """Those worth telling of: documents have been shown to the model already."""
        try:
            found = await self._sandbox.describe_variables()
        except SandboxClosed:
            raise
        except SandboxError as error:  # what the code has left behind; the sandbox has gone back to before it
            logger.warning('the variables could not be looked at: %s', error)
            return dict(self._known)
        found.pop(ARTIFACTS, None)
        return found

    async def set_artifacts(self, artifacts: Mapping[str, str]) -> None:
        """Documents for the code, by name."""
        await self.catch_up()
        await self._sandbox.set_variables({ARTIFACTS: dict(artifacts)})

    async def values(self, names: Sequence[str]) -> dict[str, object]:
        """What has become of these variables. Those that cannot be had are left out: an answer is not lost for them."""
        found: dict[str, object] = {}
        try:
            await self.catch_up()
        except SandboxError as error:
            logger.warning('the variables were not brought back, and are not in the result: %s', error)
            return found
        for name in names:
            try:
                found |= await self._sandbox.get_variables(name)
            except SandboxError as error:
                if name in self._known:  # the code has not thrown it away
                    logger.warning('the variable %s is not in the result: %s', name, error)
        return found

    def _tell(self, stream: Stream, text: str) -> None:
        self._watchers.emit(Event(kind='output', text=text, data=stream))


def check_variables(names: Iterable[object], tools: Container[str]) -> None:
    """Refuse names under which code would not find a variable, or that would hide what it needs."""
    for name in names:
        if reason := _objection(name, tools):
            msg = f'{name!r} cannot be the name of a variable for the code: {reason}; choose another'
            raise AgentError(msg)


def _objection(name: object, tools: Container[str]) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        return 'it is not a Python name (letters, digits and underscores)'
    if keyword.iskeyword(name):
        return 'it is a keyword of Python'
    if unicodedata.normalize('NFKC', name) != name:
        return 'Python reads its letters as others'
    if name.startswith('__') and name.endswith('__'):
        return 'Python itself uses such names'
    return 'a tool is called so' if name in tools else _NEEDED.get(name, '')
