"""`Chat`: a conversation with an agent. Its turns are runs that share their messages and variables."""

import logging
import secrets
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import UnionType
from typing import Any, Generic, Protocol, overload

from typing_extensions import TypeVar, Unpack

from habilis.agent.contract import Result
from habilis.agent.durable.runs import RunStore, wait_here
from habilis.agent.durable.sessions import (
    SessionState,
    cell_variables,
    check_idle,
    note_messages,
    whole_turns,
)
from habilis.agent.durable.undo import TakenBack, take_back
from habilis.agent.events import StreamEvent
from habilis.agent.hooks.stream import stream_events
from habilis.agent.loop.sandboxes import Sandboxes, open_sandboxes
from habilis.agent.loop.variables import ARTIFACTS
from habilis.agent.options import AgentSetup, Task
from habilis.agent.run_spec import RunSpec, TurnOptions, run_spec
from habilis.agent.shortening import Shortened, shorten
from habilis.agent.signatures import with_options
from habilis.core.closing import Closing
from habilis.core.errors import AgentError, RunBusy, SandboxClosed, SandboxError
from habilis.journal import recording_scope
from habilis.models.contract import Message, Model
from habilis.models.usage import Ledger
from habilis.tools.grants import Grants

logger = logging.getLogger('habilis.agent')
T = TypeVar('T', default=Any)
U = TypeVar('U')


class TakesTurns(Protocol):
    """What a conversation needs of its agent; `Runner` has it."""

    setup: AgentSetup
    ledger: Ledger

    async def run(self, spec: RunSpec, chat: 'Chat | None' = None) -> Result: ...
    async def loaded_model(self) -> Model: ...


class Chat(Closing, Generic[T]):
    """A conversation, made by `agent.conversation()`. A turn finds the messages and the variables of those before it.

    Each turn is a run. If the agent records its runs, the same session in another process continues the conversation.
    """

    def __init__(self, runner: TakesTurns, runs: RunStore, *, session: str, user: str) -> None:
        """Internal: use `agent.conversation()`."""
        self.session = session or ('' if runs.is_off else f'chat-{secrets.token_hex(6)}')
        """Name of the conversation in the journal: pass it to `agent.conversation` to continue it. Empty without a
        journal."""

        self.user = user
        self._runner = runner
        self._runs = runs
        self._state = self._start = SessionState()
        """Where the conversation is, and what its first turn starts with."""

        self._sandboxes: Sandboxes | None = None
        self._grants = Grants()
        self._is_busy = False
        self._is_closed = False
        self._has_started = False
        """Whether the turn under way has started; one that is in the record of a flow never does."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the turns so far. Those of another process are there from the first turn on."""
        return self._state.messages

    async def current_messages(self) -> tuple[Message, ...]:
        """The messages with those of turns that another process has taken."""
        await self._refresh()
        return self._state.messages

    # Turns ------------------------------------------------------------------------------------------------------------

    @overload
    async def run(self, task: Task, *, output_type: None = None, **options: Unpack[TurnOptions]) -> Result[T]: ...

    @overload
    async def run(self, task: Task, *, output_type: type[U], **options: Unpack[TurnOptions]) -> Result[U]: ...

    @overload
    async def run(self, task: Task, *, output_type: UnionType, **options: Unpack[TurnOptions]) -> Result: ...

    @with_options(TurnOptions, RunSpec)
    async def run(self, task: Task, *, output_type: Any = None, **options: Unpack[TurnOptions]) -> Result:
        """Take a turn: a run that continues the conversation. Takes the options of `Agent.run`.

        A turn that raises leaves the conversation as it was. One that reaches a limit is part of it, so that
        `run('Go on.')` continues.
        """
        return await self._run(self._spec(task, {'output_type': output_type, **options}))

    @overload
    def run_sync(self, task: Task, *, output_type: None = None, **options: Unpack[TurnOptions]) -> Result[T]: ...

    @overload
    def run_sync(self, task: Task, *, output_type: type[U], **options: Unpack[TurnOptions]) -> Result[U]: ...

    @overload
    def run_sync(self, task: Task, *, output_type: UnionType, **options: Unpack[TurnOptions]) -> Result: ...

    @with_options(TurnOptions, RunSpec)
    def run_sync(self, task: Task, *, output_type: Any = None, **options: Unpack[TurnOptions]) -> Result:
        """`run` without `await`."""
        return wait_here(self._run(self._spec(task, {'output_type': output_type, **options})))

    @with_options(TurnOptions, RunSpec)
    def stream(
        self, task: Task, *, output_type: Any = None, **options: Unpack[TurnOptions]
    ) -> AsyncGenerator[StreamEvent[Any], None]:
        """Take a turn and yield its events as they happen; the last is `RunFinished`, with the `Result`."""
        spec = self._spec(task, {'output_type': output_type, **options})
        return stream_events(lambda hook: self._run(replace(spec, hooks=(*spec.hooks, hook))))

    def _spec(self, task: Task, options: Mapping[str, Any]) -> RunSpec:
        owned = {'agent.conversation(…)': ('session', 'user')}
        spec = run_spec(task, options, TurnOptions, where='a turn', elsewhere=owned)
        return replace(spec, user=self.user or None, session=self.session)

    async def _run(self, spec: RunSpec) -> Result:
        with self._turn():
            await self._refresh()
            try:
                result = await self._runner.run(spec, self)
            except BaseException:
                if self._has_started:
                    await self._roll_back()
                raise
            self._state = await self._state_after(spec, result)
            return result

    @contextmanager
    def _turn(self) -> Generator[None]:
        if self._is_closed:
            msg = 'this conversation is closed; open it again with agent.conversation(…)'
            raise AgentError(msg)
        if self._is_busy:
            msg = 'this conversation is in the middle of a turn: wait for it, or open another conversation'
            raise RunBusy(msg)
        self._is_busy, self._has_started = True, False
        try:
            yield
        finally:
            self._is_busy = False

    # Between the turns ------------------------------------------------------------------------------------------------

    async def start_turn(self) -> tuple[SessionState, Sandboxes | None]:
        """What the turn under way starts with. Called by the agent."""
        self._has_started = True
        setup = self._runner.setup
        if self._sandboxes is None and setup.python:
            self._sandboxes = await open_sandboxes(
                setup.sandbox, setup.sandbox_settings, setup.tools, files=True, skills=setup.skills
            )
        self._grants = Grants(self._state.grants.lasting)  # the run adds to it; `undo` needs what was before
        return replace(self._state, grants=self._grants), self._sandboxes and replace(self._sandboxes, is_owned=False)

    async def _refresh(self) -> None:
        """Take over what another process, or `agent.resume`, has added to the session since the last turn."""
        if recording_scope() is not None:
            return
        if self.session:
            await check_idle(self._runs.store, self.user, self.session)
        state = await self._runs.session_state(self.user, self.session, self._state)
        state = state if state.run else self._start
        if state is not self._state:
            await self._close_sandboxes()
            self._state = state

    async def _state_after(self, spec: RunSpec, result: Result) -> SessionState:
        messages, scope = whole_turns(result.messages), recording_scope()
        names, snapshots = self._state.names, self._state.snapshots
        if self._has_started:
            names, snapshots = await self._variables()
        elif scope is not None:
            path = result.run_id.removeprefix(f'{scope.journal.run}/')
            journal = scope.journal
            names, snapshots = await cell_variables(journal.store, journal.run, journal.index, path) or (
                names,
                snapshots,
            )
        updated = 0.0
        if scope is None and self.session and self._has_started:  # one that was resumed is read from the journal
            updated = (await self._runs.store.info(result.run_id)).updated
        return SessionState(
            messages=messages,
            names=names,
            snapshots=snapshots,
            files=(*self._state.files, *spec.attached),
            grants=self._grants if self._has_started else self._state.grants,
            run=result.run_id,
            updated=updated,
        )

    async def _variables(self) -> tuple[tuple[str, ...], dict[str, bytes]]:
        """Names and snapshots of the variables. Those that cannot be saved live as long as the sandbox."""
        if self._sandboxes is None:
            return (), {}
        names, snapshots = tuple(self._state.names or ()), dict(self._state.snapshots)
        try:
            names = tuple(name for name in await self._sandboxes.main.describe_variables() if name != ARTIFACTS)
            for name, sandbox in self._sandboxes.by_name.items():
                snapshots[name] = await sandbox.snapshot()
        except SandboxClosed:
            raise
        except SandboxError as error:  # the next turn restores the variables of this one's start, and says what is gone
            logger.warning('the variables of this turn were not saved: %s', error)
        return names, snapshots

    async def _roll_back(self) -> None:
        """Restore the variables from before a turn that raised."""
        sandboxes = self._sandboxes
        if sandboxes is None or not sandboxes.is_owned:
            return
        snapshot = self._state.snapshots.get(sandboxes.main_name)
        try:
            if snapshot is not None:
                await sandboxes.main.load_snapshot(snapshot)
                return
        except SandboxError as error:
            logger.warning('the variables of the conversation were lost: %s', error)
        await self._close_sandboxes()

    async def compact(self, keep: str = '') -> Shortened:
        """Shorten the messages of the turns so far: the model writes a summary, if its context is large or something
        is to be kept; else each step becomes a short entry. Variables stay. `undo` brings the messages back."""
        with self._turn():
            await self._refresh()
            state, runner = self._state, self._runner
            done = await shorten(state.messages, await runner.loaded_model(), runner.ledger, keep)
            if done.messages == state.messages:
                return done
            if state.run == self._start.run:  # a copy without a turn: its first run records them
                self._state = self._start = replace(state, messages=done.messages)
                return done
            updated = state.updated
            if self.session:
                updated = await note_messages(self._runs.store, state.run, done.messages)
            self._state = replace(state, messages=done.messages, updated=updated)
            return done

    # Going back -------------------------------------------------------------------------------------------------------

    async def undo(self) -> TakenBack | None:
        """Take back the last turn: its messages, its variables and, with checkpoints, what it did to files.

        Its run stays in the journal, outside of the session. Returns None if there is no turn to take back.
        """
        self._check_recorded()
        with self._turn():
            await self._refresh()
            if self._state.run == self._start.run:
                return None
            taken = await take_back(self._runs.store, self._state.run)
            await self._refresh()
            return taken

    async def fork(self, session: str | None = None) -> 'Chat[T]':
        """A copy of the conversation that goes its own way from here. Files of a workspace are shared.

        The copy is recorded from its first turn on.
        """
        self._check_recorded()
        with self._turn():
            await self._refresh()
        copy = Chat[T](self._runner, self._runs, session=session or '', user=self.user)
        copy._state = copy._start = replace(self._state, grants=Grants())  # people have approved this one, not the copy
        return copy

    def _check_recorded(self) -> None:
        if not self.session:
            msg = 'a conversation without a journal cannot be taken back or copied; pass journal=… to the agent'
            raise AgentError(msg)

    # Closing ----------------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Close the sandbox of the conversation. What was recorded stays: the session can be opened again."""
        self._is_closed = True
        await self._close_sandboxes()

    async def _close_sandboxes(self) -> None:
        sandboxes, self._sandboxes = self._sandboxes, None
        if sandboxes is not None:
            await sandboxes.close()
