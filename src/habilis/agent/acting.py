"""Running the model's code, and putting together what it sees of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from habilis.agent.cut import Bounds
from habilis.agent.hints import hints_for
from habilis.agent.observe import observe
from habilis.agent.output import OutputType, WrongOutput
from habilis.agent.parsing.imports import missing_imports
from habilis.agent.parsing.shadows import without_shadows
from habilis.agent.watch import Watchers
from habilis.core.events import Event
from habilis.sandbox.contract import Cell, Stream, Variable
from habilis.sandbox.functions import HostFunction
from habilis.sandbox.session import Sandbox
from habilis.tools import CallRecord, Toolbox

FINAL_ANSWER = 'final_answer'
ARTIFACTS = 'artifacts'


@dataclass(frozen=True, kw_only=True)
class Acted:
    """What came of one piece of code."""

    code: str
    cell: Cell
    calls: tuple[CallRecord, ...]
    observation: str


class StopTool:
    """`final_answer` as the code calls it. The first value that is right is the answer."""

    def __init__(self, output: OutputType) -> None:
        self._output = output
        self.given = False
        self.value: object = None
        self._refused_none = False

    def __call__(self, answer: object) -> None:
        """Take the answer, or say what is wrong with it."""
        if answer is None and not self._refused_none and not self._output.takes_none:
            self._refused_none = True
            msg = 'final_answer got None. Pass the value itself, not the result of print(...).'
            raise WrongOutput(msg)
        value = self._output.check(answer)
        if not self.given:
            self.given, self.value = True, value

    @property
    def function(self) -> HostFunction:
        """What the sandbox gets."""
        return HostFunction(
            name=FINAL_ANSWER,
            call=self,
            is_async=False,
            parameters=('answer',),
            signature='(answer)',
            doc='Give the answer and end the task.',
        )


class Actor:
    """Runs code in one sandbox for one run."""

    def __init__(
        self,
        sandbox: Sandbox,
        toolbox: Toolbox,
        stop: StopTool,
        watchers: Watchers,
        bounds: Bounds,
        *,
        small: bool,
    ) -> None:
        self._sandbox = sandbox
        self._toolbox = toolbox
        self._stop = stop
        self._watchers = watchers
        self._functions = toolbox.functions()
        self._known: Mapping[str, Variable] = {}
        self._given: tuple[str, ...] = ()
        self._small = small
        self.bounds = bounds

    async def begin(self, variables: Mapping[str, object]) -> list[Variable]:
        """Put the user's variables in, and describe them."""
        self._given = tuple(variables)
        if variables:
            await self._sandbox.set_variables(variables)
        self._known = await self._variables()
        return [variable for name, variable in self._known.items() if name in variables]

    async def act(self, code: str, *, number: int, can_stop: bool, extra: Sequence[HostFunction] = ()) -> Acted:
        """Run one piece of code."""
        functions = [*self._functions, *extra, *([self._stop.function] if can_stop else [])]
        texts = [name for name in self._given if name in self._known and self._known[name].type == 'str']
        code = without_shadows(code, {function.name for function in functions}, texts if self._small else ())
        self._watchers.emit(Event(kind='code', text=code))
        if imports := missing_imports(code, [*self._known, *(function.name for function in functions)]):
            await self._sandbox.run('\n'.join(imports))
        on_output = self._tell if self._watchers.anyone else None  # each piece of output wakes the event loop
        try:
            cell = await self._sandbox.run(code, on_output=on_output, tools=functions)
        finally:
            self._toolbox.cancel()  # what a cell that was stopped has left waiting, for a person perhaps
        self._watchers.emit(Event(kind='cell_finished', text=cell.text or '', data=cell))
        calls = tuple(self._toolbox.take_records())
        known = self._known
        self._known = await self._variables()
        names = [*self._known, *(function.name for function in functions)]
        seen = observe(
            cell,
            number=number,
            bounds=self.bounds,
            new=[variable for name, variable in self._known.items() if known.get(name) != variable],
            calls=calls,
            hints=hints_for(code, cell, names=names, texts=texts, can_stop=can_stop),
        )
        if seen.kept:
            await self._sandbox.set_variables(seen.kept)
        return Acted(code=code, cell=cell, calls=calls, observation=seen.text)

    async def _variables(self) -> dict[str, Variable]:
        """Those worth telling of: documents have been shown to the model already."""
        found = await self._sandbox.describe_variables()
        found.pop(ARTIFACTS, None)
        return found

    async def set_artifacts(self, artifacts: Mapping[str, str]) -> None:
        """Documents for the code, by name."""
        await self._sandbox.set_variables({ARTIFACTS: dict(artifacts)})

    async def values(self, names: Sequence[str]) -> dict[str, object]:
        """What has become of these variables; those that are gone or no longer plain data are left out."""
        found: dict[str, object] = {}
        everything = await self._sandbox.get_variables() if names else {}
        for name in names:
            if name in everything:
                found[name] = everything[name]
        return found

    def _tell(self, stream: Stream, text: str) -> None:
        self._watchers.emit(Event(kind='output', text=text, data=stream))
