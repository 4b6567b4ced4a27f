"""Runs the model's code, byte for byte as it was written, and builds what the model sees of it."""

import asyncio
import functools
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from habilis.agent.context.observation import DEFINED_TYPES, ROLLED_BACK, describe_hidden_tool, observe
from habilis.agent.context.prompt import first_use_message
from habilis.agent.context.truncation import Bounds
from habilis.agent.durable.cells import CellOutcome
from habilis.agent.durable.sessions import SessionState
from habilis.agent.events import CellFinished, CodeEvent, OutputEvent
from habilis.agent.loop.final_answer import NAME
from habilis.agent.loop.foundation import Foundation
from habilis.agent.loop.sandboxes import SANDBOX_TOOLS, Sandboxes
from habilis.agent.loop.variables import ARTIFACTS
from habilis.agent.parsing.free_names import free_names
from habilis.agent.policies import SeenCell, Verdict
from habilis.agent.policies.imports import Declared
from habilis.core.errors import SandboxClosed, SandboxError
from habilis.sandbox import Sandbox
from habilis.sandbox.contract import Cell, CellError, Stream, Variable

_STUB = re.compile(r'^(?:async )?def (\w+)\(', re.MULTILINE)
NOT_RECORDED = 'the result of this code was not recorded: it may have run, in part or to its end, or not at all'
logger = logging.getLogger('habilis.agent')


@dataclass(frozen=True, kw_only=True)
class CodeToRun:
    """One cell, before it is run."""

    code: str
    number: int
    can_stop: bool
    """Whether it may call `final_answer`."""

    note: str = ''
    """The end of its observation."""


class CodeRunner:
    """Runs the cells of one run."""

    leaves_stopped = False
    """Whether a cell without an outcome in the record is not run again."""

    def __init__(self, sandboxes: Sandboxes, base: Foundation, *, bounds: Bounds, declared: Declared) -> None:
        self.bounds = bounds
        self._sandboxes = sandboxes
        self._sandbox = sandboxes.main
        self._toolbox, self._answer, self._events = base.toolbox, base.answer, base.events
        self._meter, self._policy, self._history = base.meter, base.policy, base.history
        self._recorder = base.recorder
        self.declared = declared
        self._imported: Mapping[str, Variable] = {}
        """Declared names that are no modules, described. They are no variables of the model."""

        self._variables: Mapping[str, Variable] = {}
        self._lost: set[str] = set()
        """Variables that could not be restored when the run was resumed."""

        self.gone: Sequence[str] | None = ()
        """Variables of earlier turns that are not there; None if none is there and their names are not known."""

        self._is_live = False
        """Whether the last cell was run, not answered from the record."""

        self._told: set[str] = set()
        """Tools whose stubs the model was shown in observations."""

    @property
    def variables(self) -> Iterable[Variable]:
        """The variables that are there now, described."""
        return self._variables.values()

    async def begin(self, variables: Mapping[str, object], start: SessionState) -> list[Variable]:
        """Restore the variables of earlier turns, set the user's, and describe those."""
        await self._restore_earlier(start.snapshots)
        if start.names is None:
            self.gone = () if await self._describe_variables() else None
        if self.declared.names:
            await self._import_names()
        if variables:
            await self._sandbox.set_variables(variables)
        self._variables = await self._describe_variables()
        if start.names:
            self.gone = [name for name in start.names if name not in self._variables and name not in self._imported]
        return [variable for name, variable in self._variables.items() if name in variables]

    async def _import_names(self) -> None:
        """Import and define what the prompt declares, unless an earlier turn has a variable of that name."""
        earlier = await self._describe_variables()
        await self._sandbox.run('\n'.join(self.declared.statements(without=earlier)), describe=True)
        found = await self._describe_variables()
        self._imported = {
            name: found[name] for name in self.declared.names if name in found and found[name].type in DEFINED_TYPES
        }

    async def _restore_earlier(self, snapshots: Mapping[str, bytes]) -> None:
        """Load the variables of earlier turns, except into a sandbox that was passed in and is in use."""
        is_resumed = self._recorder is not None and self._recorder.resumes
        for name, data in snapshots.items():
            sandbox = self._sandboxes.by_name.get(name)
            if sandbox is None:
                continue
            if self._sandboxes.is_owned or is_resumed or not await _is_in_use(sandbox):
                try:
                    await sandbox.load_snapshot(data)
                except SandboxError as error:
                    logger.warning('variables of earlier turns are gone: %s', error)

    async def run(self, wanted: CodeToRun) -> CellOutcome:
        """Run one cell, or take its outcome from the record."""
        code = wanted.code
        if self._toolbox.has_uncalled:  # also for code of later cells, which may call them indirectly
            self._toolbox.add_called(free_names(code, self._variables))
        live = functools.partial(self._leave_stopped if self.leaves_stopped else self._run_live, wanted)
        try:
            if self._recorder is None:
                outcome = await live()
            else:
                outcome = await self._recorder.cell(code, live, snapshot=self._snapshots)
                await self._replay_calls(outcome)
        except BaseException:
            self._answer.withdraw()
            raise
        self._variables = outcome.variables
        self._told.update(_STUB.findall(outcome.observation))
        if not outcome.answered:
            self._answer.withdraw()
        elif not self._answer.is_given:  # from the record
            await self._answer.take(outcome.answer)
        self._history.turns.append((outcome.seen, outcome.verdict))
        return outcome

    async def _leave_stopped(self, wanted: CodeToRun) -> CellOutcome:
        await self.restore()
        cell = Cell(error=CellError(kind='cancelled', type='Stopped', message=NOT_RECORDED))
        seen = f'Error:\n{cell.error}\n{ROLLED_BACK}'
        return CellOutcome(code=wanted.code, cell=cell, observation=seen, variables=self._variables)

    async def _run_live(self, wanted: CodeToRun) -> CellOutcome:
        code = wanted.code
        self._is_live = True
        await self.restore()
        self._events.go_live()
        self._events.report(CodeEvent, code=code)
        functions = [*self._toolbox.functions(), *([self._answer.function] if wanted.can_stop else [])]
        on_output = self._emit_output if self._events.has_hooks else None  # output wakes the event loop
        self._toolbox.open(code)
        waited = self._meter.waited
        running = asyncio.ensure_future(self._sandbox.run(code, on_output=on_output, tools=functions, describe=True))
        try:
            cell = await asyncio.shield(running)
        finally:
            self._toolbox.cancel()  # calls that the cell has left waiting, perhaps for a person; they hold its thread
            if not running.done():
                running.cancel()
                await asyncio.wait((running,))
        is_answer = bool(cell.calls) and cell.calls[-1].tool == NAME
        variables = await self._describe_variables()
        await self._toolbox.settle()
        asked = self._meter.waited - waited
        cell = replace(
            cell,
            calls=tuple(self._toolbox.take_records()),  # with those stopped with the cell
            displays=(*cell.displays, *self._toolbox.take_displays()),
            seconds=max(0.0, cell.seconds - asked),  # without the time that people took
            waited=max(0.0, cell.waited - asked),
        )
        self._events.report(CellFinished, cell=cell, is_answer=is_answer)
        tools = [function.name for function in functions]
        return await self._outcome(wanted, cell, variables, tools)

    async def _outcome(
        self, wanted: CodeToRun, cell: Cell, variables: Mapping[str, Variable], tools: Sequence[str]
    ) -> CellOutcome:
        """Judge a cell that has run, and tell the model of it."""
        names = [*variables, *tools]
        new = [variable for name, variable in variables.items() if self._variables.get(name) != variable]
        verdict = self._judge(wanted, cell, names=names, new=new)
        seen = observe(
            cell,
            code=wanted.code,
            number=wanted.number,
            bounds=self.bounds,
            taken=names,
            new=new,
            known=self._variables,
            hidden=[describe_hidden_tool(one, variables) for one in new if one.name in {*tools} - {*self._variables}],
            calls=cell.calls,
            note='\n'.join(filter(None, (self._first_used(cell), verdict.note, wanted.note))),
        )
        if seen.kept:
            await self._sandbox.set_variables(seen.kept)
            variables = await self._describe_variables()  # the model was told of those just set
        answered = self._answer.is_given and not verdict.refuse
        return CellOutcome(
            code=wanted.code,
            cell=cell,
            observation=seen.text,
            verdict=verdict,
            variables=variables,
            answered=answered,
            answer=self._answer.raw if answered else None,
            question=self._toolbox.take_question(),
        )

    def _first_used(self, cell: Cell) -> str:
        """The stubs of tools that the model was not shown before, not even by this cell."""
        if not cell.calls:
            return ''
        told = self._told.union(_STUB.findall(f'{cell.stdout}\n{cell.text or ""}'))
        unlisted = {*self._toolbox.unlisted()} - told
        new = dict.fromkeys(call.tool for call in cell.calls if call.tool in unlisted)
        return first_use_message([self._toolbox.describe(name) for name in new])

    def _judge(self, wanted: CodeToRun, cell: Cell, *, names: Sequence[str], new: Sequence[Variable]) -> Verdict:
        seen = SeenCell(
            code=wanted.code,
            cell=cell,
            calls=cell.calls,
            is_answer=self._answer.is_given,
            can_stop=wanted.can_stop,
            names=names,
            lost=self._lost,
            coroutines=[variable.name for variable in new if variable.type == 'coroutine'],
        )
        return self._history.allowed(self._policy.after_cell(seen, self._history), cell.calls)

    async def _replay_calls(self, outcome: CellOutcome) -> None:
        """Report calls from the record to the limits and to tools that keep state in memory."""
        if self._is_live:
            self._is_live = False
            return
        for call in outcome.cell.calls:
            self._meter.recall(call)
            if call.tool not in SANDBOX_TOOLS:  # their effects are in the snapshots
                await self._toolbox.remember(call)

    async def restore(self) -> None:
        """Load the variables of the record into the sandboxes, before they are used."""
        if self._recorder is None:
            return
        for name, data in (await self._recorder.snapshots()).items():
            sandbox = self._sandboxes.by_name[name]
            await sandbox.load_snapshot(data)
            if sandbox.lost:
                self._lost |= set(sandbox.lost)
                logger.warning('not restored, because they could not be saved: %s', ', '.join(sandbox.lost))

    async def _snapshots(self) -> dict[str, bytes]:
        """Snapshots of all sandboxes by name. One that fails is left out: a resume gets the one before."""
        found: dict[str, bytes] = {}
        for name, sandbox in self._sandboxes.by_name.items():
            try:
                found[name] = await sandbox.snapshot()
            except SandboxError as error:
                logger.warning('the variables of the sandbox %s were not recorded: %s', name, error)
        return found

    async def _describe_variables(self) -> dict[str, Variable]:
        try:
            found = await self._sandbox.describe_variables()
        except SandboxClosed:
            raise
        except SandboxError as error:  # the sandbox was rolled back to before the cell
            logger.warning('the variables could not be described: %s', error)
            return dict(self._variables)
        found.pop(ARTIFACTS, None)  # the model was shown the documents
        return {name: variable for name, variable in found.items() if self._imported.get(name) != variable}

    async def set_artifacts(self, artifacts: Mapping[str, str]) -> None:
        """Make documents available to code, by name."""
        await self.restore()
        await self._sandbox.set_variables({ARTIFACTS: dict(artifacts)})

    async def values(self, names: Sequence[str]) -> dict[str, object]:
        """The current values of these variables. One that cannot be read is left out, and logged."""
        found: dict[str, object] = {}
        try:
            await self.restore()
        except SandboxError as error:
            logger.warning('the variables were not restored, and are not in the result: %s', error)
            return found
        for name in names:
            try:
                found |= await self._sandbox.get_variables(name)
            except SandboxError as error:
                if name in self._variables:  # the code has not deleted it
                    logger.warning('the variable %s is not in the result: %s', name, error)
        return found

    def _emit_output(self, stream: Stream, text: str) -> None:
        self._events.report(OutputEvent, stream=stream, output=text)


async def _is_in_use(sandbox: Sandbox) -> bool:
    """Whether a sandbox has variables. One that has lost them, because its interpreter died, has none."""
    try:
        return bool(await sandbox.describe_variables())
    except SandboxClosed:
        raise
    except SandboxError as error:
        logger.warning('the sandbox of the conversation has lost its variables: %s', error)
        return False
