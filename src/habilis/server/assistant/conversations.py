"""The conversations that are open on this server. A turn goes on whoever watches it, and after a restart."""

import asyncio
import contextlib
import hashlib
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from habilis.agent import Agent
from habilis.agent.contract import Result, Waiting
from habilis.agent.durable.totals import RunTotals, read_totals
from habilis.agent.durable.trajectory import read_trajectories
from habilis.assistant import Session, SessionEvent, TurnEnded, TurnStarted
from habilis.core.approval import Approval
from habilis.core.codec import Json
from habilis.core.errors import HabilisError, RunBusy, RunNotFound
from habilis.core.settings import Settings, load_settings
from habilis.forge.library.library import Library
from habilis.journal.contract import RunInfo
from habilis.journal.copies import new_run_id
from habilis.journal.errors import run_not_found
from habilis.journal.lookup import info_of
from habilis.journal.questions import answer_run, check_answer
from habilis.journal.runs import list_runs, read_run
from habilis.memory import Memory
from habilis.models.contract import Model
from habilis.models.files import File
from habilis.research.flow import RESEARCH_FLOW
from habilis.server.assistant.live_events import LIVE, live_json
from habilis.server.assistant.researches import Researches
from habilis.server.assistant.turn_choices import AS_BEFORE, SERVED, OfferedModels, TurnChoice
from habilis.server.assistant.watching import WatchedStore, Watchers
from habilis.server.operations import BadRequest
from habilis.tools import ApprovalRequest
from habilis.tools.web.contract import PageSource

IDLE_SECONDS = 900.0
MAX_OPEN = 50
"""Conversations of a user that are open at once, besides those with a turn under way."""

MAX_KEYS = 10_000
"""Messages whose keys are remembered. Those of other turns are in the journal."""

MAX_TOTALS = 10_000
"""Runs that have ended, of which it is known what they took."""

API_SESSION = 'api'
"""The conversation whose agent answers what belongs to none. It has no turns."""

logger = logging.getLogger('habilis.server')


class OpenConversation:
    """One conversation: its session, and the turn under way.

    It is the view of its session, and nobody is present in it: a call that needs an approval waits in the journal,
    where every browser sees it, and the server may be restarted before it is answered.
    """

    is_present = False

    def __init__(self, watchers: Watchers) -> None:
        self.session: Session
        self.first_model: Model
        """That of the server."""

        self.chosen_model = ''
        """The name that the model of the next turn was chosen by."""

        self.last_used = asyncio.get_running_loop().time()
        self._opened = contextlib.AsyncExitStack()
        self._watchers = watchers
        self._run = ''
        self._turn: asyncio.Task[Result[Any]] | None = None
        self._listeners: set[Callable[[SessionEvent], None]] = set()

    # The view of the session ------------------------------------------------------------------------------------------

    def show(self, event: SessionEvent) -> None:
        """Pass on what the journal does not have."""
        for listener in tuple(self._listeners):
            listener(event)
        if isinstance(event, TurnStarted):
            self._run = event.run
        if isinstance(event, LIVE):
            self._watchers.wake('run', self._run, [live_json(event)])

    async def answer(self, question: str) -> str | None:
        """Nobody is present."""

    async def approve(self, request: ApprovalRequest) -> bool | Approval:
        """Nobody is present."""
        return False

    async def may_repeat(self, call: Waiting) -> bool:
        """Nobody is present."""
        return False

    # Turns ------------------------------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """Whether a turn is under way."""
        return self._turn is not None and not self._turn.done()

    async def send(self, message: str, files: Sequence[File], run: str) -> str:
        """Begin a turn. Returns the id of its run, which is in the journal then. Raises `HabilisError`."""
        return await self._begin(self.session.send(message, files=files, run_id=run), run)

    def stream(self, message: str, files: Sequence[File], run: str) -> AsyncGenerator[SessionEvent, None]:
        """Begin a turn, and yield its events; the last is `TurnEnded`. The turn goes on if this is closed."""
        return self._watch(lambda: self.send(message, files, run))

    def stream_decision(self, run: str, answer: Json | Approval, path: str) -> AsyncGenerator[SessionEvent, None]:
        """Like `decide`, and yields the events of the turn."""
        return self._watch(lambda: self.decide(run, answer, path))

    async def _watch(self, begin: Callable[[], Awaitable[str]]) -> AsyncGenerator[SessionEvent, None]:
        queue: asyncio.Queue[SessionEvent | None] = asyncio.Queue()
        listener = queue.put_nowait
        self._listeners.add(listener)
        try:
            await begin()
            turn = self._turn
            assert turn is not None
            turn.add_done_callback(lambda _: queue.put_nowait(None))
            while (event := await queue.get()) is not None:
                yield event
                if isinstance(event, TurnEnded):
                    return
            turn.result()  # raises why the turn did not begin
        finally:
            self._listeners.discard(listener)

    async def decide(self, run: str, answer: Json | Approval, path: str | None) -> str:
        """Answer what a turn waits for, and go on with it. The turn may be about to end: it asks before it does."""
        if self._turn is not None and self._run == run:
            await asyncio.wait([self._turn])
        return await self._begin(self.session.answer(run, answer, path=path), run)

    async def finish(self) -> str:
        """Go on with the turn that was cut short."""
        unfinished = self.session.unfinished
        return await self._begin(self.session.finish(), unfinished.run if unfinished else '')

    async def _begin(self, work: Coroutine[Any, Any, Result[Any]], run: str) -> str:
        if self.is_busy:
            work.close()
            msg = f'the conversation {self.session.id!r} is in the middle of a turn: wait for it, or stop it'
            raise RunBusy(msg)
        self._run = ''
        self._turn = asyncio.create_task(work)
        self._turn.add_done_callback(_log)
        with self._watchers.watch('run', run) as watcher:
            # A message may go on with a turn that has failed, whose run is another.
            while not self._turn.done() and not await self._is_recorded(self._run or run):
                await watcher.wait(0.05)
        if self._turn.done() and not await self._is_recorded(self._run or run):
            self._turn.result()  # raises why
        return self._run or run

    async def _is_recorded(self, run: str) -> bool:
        try:
            await self.session.store.info(run)
        except RunNotFound:
            return False
        return True

    def stop(self) -> bool:
        """Stop the turn under way. False if there is none."""
        return self.session.stop()

    async def open(self, session: contextlib.AbstractAsyncContextManager[Session]) -> None:
        """Open the session. Raises `HabilisError`."""
        self.session = await self._opened.enter_async_context(session)
        self.first_model = self.session.model
        self.chosen_model = self.first_model.name

    async def use_model(self, name: str, model: Model) -> None:
        """Go on with another model, which stays open. Raises `HabilisError`."""
        await self.session.switch(model)
        self.session.meta = {**self.session.meta, SERVED: name}
        self.chosen_model = name

    async def close(self) -> None:
        """Cancel the turn under way, and free the session."""
        if self._turn is not None:
            self._turn.cancel()
            await asyncio.gather(self._turn, return_exceptions=True)
        await self._opened.aclose()


OpenSession = Callable[[str, str, OpenConversation], contextlib.AbstractAsyncContextManager[Session]]
"""The session of a user with this id, and with this view, until it is closed."""


class KeyReused(BadRequest):
    """An Idempotency-Key came again, with another request."""


class _Sent(NamedTuple):
    """A message that came with a key."""

    session: str
    message: str
    digests: tuple[str, ...]
    """Of its files."""


class Conversations:
    """All conversations that are open, by user."""

    def __init__(
        self,
        store: WatchedStore,
        watchers: Watchers,
        open_session: OpenSession,
        library: Library | None = None,
        settings: Settings | None = None,
        open_source: Callable[[], PageSource] | None = None,
    ) -> None:
        self.store = store
        self.watchers = watchers
        self.library = library
        """The tools that the agent finds; None if it has no library."""

        self.settings = settings or load_settings()
        """They say which models may be chosen."""

        self.offered_models = OfferedModels(self.settings)
        self.researches = Researches(store, open_source)
        self._open_session = open_session
        self._open: dict[tuple[str, str], OpenConversation] = {}
        self._sent: dict[str, tuple[_Sent, asyncio.Task[str]]] = {}
        """Messages that came with a key, by the run that the key stands for."""

        self._totals: dict[str, tuple[RunInfo, RunTotals]] = {}
        self._opening: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        """One per conversation: the model and the files of one may take long to load, which others do not wait for."""

    async def get(self, user: str, session: str) -> OpenConversation:
        """The conversation of this id, which is opened if need be. Raises `HabilisError`."""
        opening = self._opening.setdefault((user, session), asyncio.Lock())
        async with opening:
            found = self._open.get((user, session))
            if found is None:
                found = OpenConversation(self.watchers)
                await found.open(self._open_session(user, session, found))
                await self._use_last_model(found)
                self._open[user, session] = found
                await self._close_least_used(user)
        found.last_used = asyncio.get_running_loop().time()
        return found

    async def _use_last_model(self, one: OpenConversation) -> None:
        """Go on with the model that was chosen for the last turn, if it is still offered."""
        name = one.session.last_meta.get(SERVED)
        if isinstance(name, str):
            try:
                await self.choose(one, TurnChoice(model=name))
            except BadRequest as error:
                logger.warning('%s goes on with %s: %s', one.session.id, one.first_model.name, error)

    async def _close_least_used(self, user: str) -> None:
        """Keep a user from opening conversations without end. Those with a turn under way stay open."""
        theirs = [key for key in self._open if key[0] == user and key[1] != API_SESSION]
        idle = sorted((key for key in theirs if not self._open[key].is_busy), key=lambda key: self._open[key].last_used)
        for key in idle[: max(0, len(theirs) - MAX_OPEN)]:
            await self._open.pop(key).close()

    async def agent(self, user: str) -> Agent[Any]:
        """The agent that answers a user, for a run that is no turn of a conversation."""
        return (await self.get(user, API_SESSION)).session.opened.agent

    async def memory(self, user: str) -> Memory:
        """The memory of a user."""
        return (await self.get(user, API_SESSION)).session.memory

    async def model_name(self, user: str) -> str:
        """The name of the model that answers a user."""
        return (await self.get(user, API_SESSION)).session.model.name

    async def choose(self, one: OpenConversation, choice: TurnChoice) -> None:
        """Go on as a message wants it. Raises `BadRequest` for a model that is not offered."""
        if one.is_busy:  # sending the message says so
            return
        if choice.model and choice.model != one.chosen_model:
            is_first = choice.model == one.first_model.name
            await one.use_model(
                choice.model, one.first_model if is_first else await self.offered_models.load(choice.model)
            )
        if choice.mode:
            await one.session.set_mode(choice.mode)

    async def totals(self, info: RunInfo) -> RunTotals:
        """What a run took so far. Records of a run that has ended are read once."""
        known = self._totals.get(info.run)
        if known is not None and known[0] == info:
            return known[1]
        totals = await read_totals(await read_run(self.store, info.run, user=info.user))
        if info.status != 'running':
            self._totals[info.run] = info, totals
            if len(self._totals) > MAX_TOTALS:
                del self._totals[next(iter(self._totals))]
        return totals

    async def send(
        self,
        user: str,
        session: str,
        message: str,
        *,
        files: Sequence[File] = (),
        key: str = '',
        choice: TurnChoice = AS_BEFORE,
    ) -> str:
        """Begin a turn; its run. The same key again returns the same run, also after a restart.

        Raises `KeyReused` if the key came with another request.
        """
        if not key:
            return await self._send(user, session, message, files, new_run_id(), choice)
        request = _Sent(session, message, tuple(file.digest for file in files))
        run = f'run-{hashlib.sha256(json.dumps([user, key]).encode()).hexdigest()[:12]}'
        if run not in self._sent:
            self._sent[run] = request, asyncio.create_task(self._send_once(user, request, files, run, choice))
        known, sending = self._sent[run]
        _check_same(known, request)
        try:
            return await asyncio.shield(sending)
        except Exception:
            self._sent.pop(run, None)  # it may be tried again
            raise

    async def _send_once(self, user: str, request: '_Sent', files: Sequence[File], run: str, choice: TurnChoice) -> str:
        if len(self._sent) > MAX_KEYS:
            del self._sent[next(iter(self._sent))]
        with contextlib.suppress(RunNotFound):
            view = await read_run(self.store, run, user=user)
            inputs = (await read_trajectories(view))[0].inputs
            digests = tuple(file.digest for file in inputs.files if not file.is_earlier)
            _check_same(_Sent(view.info.session, inputs.task, digests), request)
            return run
        return await self._send(user, request.session, request.message, files, run, choice)

    async def _send(
        self, user: str, session: str, message: str, files: Sequence[File], run: str, choice: TurnChoice
    ) -> str:
        one = await self.get(user, session)
        await self.choose(one, choice)
        return await one.send(message, files, run)

    async def decide(self, user: str, run: str, answer: Json | Approval, path: str | None) -> str:
        """Answer what a run waits for, and go on with it. Raises `RunNotFound`, `RunBusy` or `JournalError`."""
        given = answer.to_json() if isinstance(answer, Approval) else answer
        await check_answer(self.store, run, given, path=path, user=user)
        return await (await self._of_run(user, run)).decide(run, answer, path)

    async def stream_decisions(
        self, user: str, session: str, run: str, answers: Mapping[str, Json | Approval]
    ) -> AsyncGenerator[SessionEvent, None]:
        """Like `decide`, for all that a turn of a conversation waits for, by path. Returns the events that follow."""
        if (await info_of(self.store, run, user)).session != session:
            raise run_not_found(run)
        written = {path: one.to_json() if isinstance(one, Approval) else one for path, one in answers.items()}
        for path, answer in written.items():
            await check_answer(self.store, run, answer, path=path, user=user)
        *others, last = written
        for path in others:
            await answer_run(self.store, run, written[path], path=path, user=user)
        return (await self.get(user, session)).stream_decision(run, answers[last], last)

    async def stop(self, user: str, run: str) -> bool:
        """Stop a run. False if it is not under way here."""
        info = (await read_run(self.store, run, user=user)).info
        found = self._open.get((user, info.session))
        return self.researches.stop(run) or (found is not None and found.stop())

    async def _of_run(self, user: str, run: str) -> OpenConversation:
        info = (await read_run(self.store, run, user=user)).info
        return await self.get(user, info.session)

    async def resume_interrupted(self) -> None:
        """Go on with the turns and researches that were under way when the server was stopped or killed."""
        for listed in await list_runs(self.store, state='interrupted'):
            info = listed.info
            try:
                await self._resume(info)
            except HabilisError as error:
                logger.warning('%s cannot be resumed: %s', info.run, error)

    async def _resume(self, info: RunInfo) -> None:
        view = await read_run(self.store, info.run)
        if view.imported:
            return
        if info.name == RESEARCH_FLOW:
            if await self.researches.is_served(info.run):
                one = await self.get(info.user, API_SESSION)
                await self.researches.resume(one.session.model, info.user, info.run)
            return
        agents = await read_trajectories(view)
        inputs = agents[0].inputs if agents else None
        if inputs is not None and SERVED in inputs.meta:
            await (await self.get(info.user, info.session)).finish()

    async def close_idle(self) -> None:
        """Close the conversations that were not used for a while. They are opened again when they are."""
        while True:
            await asyncio.sleep(IDLE_SECONDS / 10)
            now = asyncio.get_running_loop().time()
            for key, one in list(self._open.items()):
                if not one.is_busy and now - one.last_used > IDLE_SECONDS:
                    del self._open[key]
                    await one.close()

    async def close(self) -> None:
        """Close all. Turns under way are interrupted: the next server goes on with them."""
        self.store.freeze()
        await asyncio.gather(self.researches.close(), *(one.close() for one in self._open.values()))
        await self.offered_models.close()
        self._open.clear()


def _check_same(known: _Sent, request: _Sent) -> None:
    if known != request:
        msg = 'this Idempotency-Key came with another request: take a new key for each'
        raise KeyReused(msg)


def _log(task: asyncio.Task[Result[Any]]) -> None:
    """Take the exception of a turn, which those who watch have been told."""
    if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, HabilisError):
        logger.error('a turn failed', exc_info=error)
