"""`Scope`: a path in the journal of a run. Its steps are replayed from the record, or run and recorded."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextvars import ContextVar
from copy import deepcopy
from functools import lru_cache
from typing import TypeVar
from weakref import WeakKeyDictionary

from habilis.core.codec import Json
from habilis.core.errors import JournalError, NotDurable
from habilis.journal.contract import Record
from habilis.journal.failures import add_path, decode_error, encode_error
from habilis.journal.index import BRANCH, PathRecords, is_in_order, name_of, parent_of
from habilis.journal.journal import Journal
from habilis.journal.values import PLAIN, Codec, fingerprint

T = TypeVar('T')
Attach = Callable[[], Awaitable[Mapping[str, bytes]]]
"""Returns blobs by name, to attach to a record."""

CALL, ARGUMENTS = 'call', 'arguments'
"""Fields of the value of the first record of a call: its text, and its arguments."""


class Paused(BaseException):
    """The run waits for a person. Not an `Exception`, so that `except Exception` in a flow does not catch it."""

    def __init__(self, path: str, question: str) -> None:
        super().__init__(question)
        self.path = path
        self.question = question


_current: ContextVar['Scope | None'] = ContextVar('habilis_scope', default=None)


def current_scope() -> 'Scope | None':
    """The scope of the running code; None outside of a journal."""
    return _current.get()


def recording_scope() -> 'Scope | None':
    """The scope in which a step of the running code is recorded. None outside of a journal or of its event loop."""
    scope = _current.get()
    return scope if scope is not None and scope.journal.loop is asyncio.get_running_loop() else None


def first_path(name: str) -> str:
    """The path of the first step or scope of this name in a run."""
    return f'{_safe(name)}#1'


class Scope:
    """A path in the journal of a run; its steps have paths below it."""

    def __init__(self, journal: Journal, path: str) -> None:
        self.journal = journal
        self.path = path

    def __repr__(self) -> str:
        return f'<scope {self.path or "/"} of {self.journal.run}>'

    @contextlib.contextmanager
    def entered(self) -> Generator['Scope']:
        """Make this the current scope. Steps of this task are numbered in order; other tasks get branches."""
        self.journal.scope_state(self.path).owner = asyncio.current_task()
        token = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(token)

    @contextlib.contextmanager
    def outside(self) -> Generator[None]:
        """Run the block outside of the journal."""
        token = _current.set(None)
        try:
            yield
        finally:
            _current.reset(token)

    # Paths ------------------------------------------------------------------------------------------------------------

    def below(self, name: str, *, key: str = '') -> 'Scope':
        """The next scope of this name. It is recorded, with its key, only when something inside is recorded."""
        path = self._next(_safe(name), key)
        journal = self.journal
        journal.index.mark_replayed(path)
        journal.set_scope_opening(path, key)
        journal.scope_state(path).owner = asyncio.current_task()
        return Scope(journal, path)

    def branch(self, number: int) -> 'Scope':
        """A numbered branch of this scope. Do not mix these with the automatic branches of tasks in one scope."""
        path = _join(self.path, f'{BRANCH}{number}')
        self.journal.index.mark_replayed(path)
        self.journal.index.count_branch(self.path, number)
        return Scope(self.journal, path)

    def _next(self, name: str, key: str) -> str:
        """The path of the next step: in this scope, or in the branch of the running task."""
        scope, state, task = self.path, self.journal.scope_state(self.path), asyncio.current_task()
        if state.owner is None:
            state.owner = task
        if task is not None and task is not state.owner:
            if state.branches is None:
                state.branches = WeakKeyDictionary()
            scope = state.branches.get(task) or self._find_branch(name, key)
            state.branches[task] = scope
            state = self.journal.scope_state(scope)
        return _join(scope, f'{name}#{state.next_number(name)}')

    def _find_branch(self, name: str, key: str) -> str:
        """The recorded branch that starts with this step, or a new one. Tasks may start in another order on replay."""
        index = self.journal.index
        branch = index.find_branch(self.path, name, key) or index.new_branch(self.path)
        index.mark_replayed(branch)
        return branch

    # Steps ------------------------------------------------------------------------------------------------------------

    async def step(
        self,
        name: str,
        work: Callable[[], Awaitable[T]],
        *,
        key: str = '',
        codec: Codec[T] = PLAIN,
        opening: Json = None,
        inside: Json = None,
        once: bool = False,
        last: bool = False,
        attach: Attach | None = None,
        replayed: Callable[[Record], None] | None = None,
        located: Callable[[str], None] | None = None,
    ) -> T:
        """The recorded result of a step; without a record, run the work and record its result.

        Args:
            name: the name of the step; its number in this scope is added.
            work: the function to run. Steps inside it are recorded below this one.
            key: a digest of the input (`fingerprint`).
            codec: encodes the result.
            opening: the input, for readers of the record; its field `call` is the call as text, for questions about it.
            inside: like `opening`, but recorded only together with the first record inside the step.
            once: never start it twice: if it was running when the process died, a person is asked.
            last: it ends the run: that the run is done is recorded together with its result.
            attach: called after the work; returns blobs to attach to the record.
            replayed: called with the record if the step is replayed.
            located: called with the path of the step.
        """
        path = self._next(_safe(name), key)
        if located is not None:
            located(path)
        entry = self.journal.index.replay_ended(path, key) or await self._matching(path, key)
        if entry is not None and entry.end is not None:
            return await self._replay(entry.end, codec, replayed)
        return await self._run(path, entry, work, key, codec, opening, once, attach, inside, last)

    async def call(
        self,
        name: str,
        work: Callable[[], Awaitable[T]],
        *,
        key: str,
        codec: Codec[T] = PLAIN,
        opening: Json = None,
        once: bool = False,
        located: Callable[[str], None] | None = None,
    ) -> T:
        """Like `step`, for calls in any order and from any task: they are identified by their key.

        `located` is called with the path of the call.
        """
        path = self._call_path(name, key, located)
        entry = self.journal.index.replay_ended(path, key) or await self._matching(path, key)
        if entry is not None and entry.end is not None:
            return await self._replay(entry.end, codec)
        return await self._run(path, entry, work, key, codec, opening, once)

    def _call_path(self, name: str, key: str, located: Callable[[str], None] | None) -> str:
        """The path of the next call with this name and key."""
        label = f'{_safe(name)}({key if key.isalnum() else fingerprint(key)})'
        path = _join(self.path, f'{label}#{self.journal.scope_state(self.path).next_number(label)}')
        if located is not None:
            located(path)
        return path

    async def _replay(self, end: Record, codec: Codec[T], replayed: Callable[[Record], None] | None = None) -> T:
        """The recorded result of a step, or its error."""
        written = await self.journal.value_of(end) if end.blob else end.value
        if end.kind == 'failed':
            raise add_path(decode_error(written), end.path)
        if replayed is not None:
            replayed(end)
        return codec.read(written)

    async def _run(
        self,
        path: str,
        entry: PathRecords | None,
        work: Callable[[], Awaitable[T]],
        key: str,
        codec: Codec[T],
        opening: Json,
        once: bool,
        attach: Attach | None = None,
        inside: Json = None,
        last: bool = False,
    ) -> T:
        """Run the work of a step in its own scope, and record its result or its error."""
        journal = self.journal
        if journal.is_halted(path):
            raise Paused(path, 'the flow around it has stopped')
        if not once and opening is not None and (entry is None or entry.opened is None):
            await journal.write('opened', path, key=key, value=opening)
        else:
            await journal.start_writing()
        if once and (answered := await self._start_once(path, key, entry, codec, opening)) is not None:
            return answered[0]
        journal.start_step(path, once=once, key='' if once else key, value=inside)
        try:
            try:
                with Scope(journal, path).entered():
                    value = await work()
                if journal.index.has_unreplayed(path):
                    await self._check_replayed(path)
                blobs = None if attach is None else await attach()
            except (Exception, asyncio.CancelledError) as error:
                await self._record_error(path, key, error)
                raise
            written = codec.write(value)
            if last:
                await self.finish()
                await journal.end('done', result=(path, written))
            else:
                await journal.write('done', path, key=key, value=written, attached=blobs)
        finally:
            journal.finish_step(path)
        return codec.as_replayed(value, written)

    @contextlib.asynccontextmanager
    async def group(self, name: str, *, key: str = '', opening: Json = True) -> AsyncGenerator['Scope']:
        """A scope that is recorded like a step, but without a value: on replay, its steps are replayed one by one."""
        journal, path = self.journal, self._next(_safe(name), key)
        entry = await self._matching(path, key)
        end = None if entry is None else entry.end
        if end is not None and end.kind == 'failed':
            raise add_path(decode_error(await journal.value_of(end)), path)
        if end is None and journal.is_halted(path):
            raise Paused(path, 'the flow around it has stopped')
        if entry is None or entry.opened is None:
            await journal.write('opened', path, key=key, value=opening)
        inside = Scope(journal, path)
        try:
            with inside.entered():
                yield inside
            await inside.finish()
        except (Exception, asyncio.CancelledError) as error:
            await self._record_error(path, key, error)
            raise
        if end is None:
            await journal.write('done', path, key=key)

    async def _record_error(self, path: str, key: str, error: Exception | asyncio.CancelledError) -> None:
        """Record that a step failed, or was cancelled. Errors of the journal are not those of the step."""
        if isinstance(error, asyncio.CancelledError):
            self.journal.step_cancelled(parent_of(path), path, key)
        elif not isinstance(error, JournalError):
            await self.journal.write('failed', path, key=key, value=encode_error(error))
            add_path(error, path)

    async def finish(self) -> None:
        """End this scope. Raises `RunChanged` if the code has not replayed everything that was recorded in it."""
        await self._check_replayed(self.path)

    async def _matching(self, path: str, key: str) -> PathRecords | None:
        """The entry of this step, if the record matches the code."""
        journal = self.journal
        index = journal.index
        index.mark_replayed(path)
        entry = index.find(path)
        if entry is not None and entry.key not in {None, key}:
            left = [path, *(index.unreplayed_steps(parent_of(path)) if is_in_order(path) else [])]
            await journal.diverge(parent_of(path), left, f'{path} was recorded with different arguments')
            return None
        if entry is None or (entry.end is None and entry.answered is None):
            left = self._skipped(path) if index.was_loaded and is_in_order(path) else []
            if left:
                await journal.diverge(parent_of(left[0]), left, f'{path} starts where {left[0]} was recorded')
            if journal.scope_state(parent_of(path)).cancelled:
                await self._continue_after_cancel(parent_of(path))
        return entry

    async def _continue_after_cancel(self, scope: str) -> None:
        """Record cancelled steps as failed if the code continues after them, so that it does so on replay too."""
        journal, task = self.journal, asyncio.current_task()
        state = journal.scope_state(scope)
        if not state.cancelled or task is None or task is not state.owner:
            return
        if task.cancelling():  # it is only cleaning up; the step runs again when the run is resumed
            raise asyncio.CancelledError
        cancelled, state.cancelled = state.cancelled, None
        for path, key in cancelled.items():
            error = TimeoutError(f'{path} was cancelled, and the code continued')
            await journal.write('failed', path, key=key, value=encode_error(error))

    def _skipped(self, path: str) -> list[str]:
        """Recorded steps and branches that should have been replayed before this task starts a new step."""
        journal, scope = self.journal, parent_of(path)
        index = journal.index
        left = index.unreplayed_steps(scope)
        branches = index.unreplayed_branches(scope) if self._owns(scope) else []
        while scope and not left and is_in_order(scope) and self._owns(parent_of(scope)):
            scope = parent_of(scope)
            left = index.unreplayed_steps(scope)
            branches += index.unreplayed_branches(scope)
        return left or (branches if branches and not journal.has_other_tasks() else [])

    def _owns(self, scope: str) -> bool:
        return self.journal.scope_state(scope).owner is asyncio.current_task()

    async def _check_replayed(self, path: str) -> None:
        """Handle recorded steps of a scope that the code has not replayed."""
        index = self.journal.index
        left = [*index.unreplayed_steps(path), *index.unreplayed_branches(path)]
        if left:
            await self.journal.diverge(path, left, f'{path} ends without the recorded {left[0]}')

    # Questions --------------------------------------------------------------------------------------------------------

    async def ask(self, name: str, request: Json, *, question: str, key: str = '') -> Json:
        """The answer of a person. Raises `Paused` while there is none."""
        path = self._next(_safe(name), key)
        await self._matching(path, key)
        return await self._ask(path, request, question, key)

    async def _ask(self, path: str, request: Json, question: str, key: str, *, since: int = 0) -> Json:
        """The answer, if it came after record number `since`."""
        journal = self.journal
        entry = journal.index.find(path)
        if entry is not None and entry.answered is not None and entry.answered.seq > since:
            return deepcopy(await journal.value_of(entry.answered))
        if entry is None or entry.asked is None or entry.asked.seq < since:
            await journal.write('asked', path, key=key, value=request)
        journal.waiting[path] = request
        raise Paused(path, question)

    async def decide(
        self,
        name: str,
        request: Json,
        *,
        question: str,
        key: str,
        person: Callable[[], Awaitable[Json]] | None = None,
        located: Callable[[str], None] | None = None,
    ) -> Json:
        """Like `ask`, for questions in any order, identified by `key`. If `person` is given, it is asked at once."""
        path = self._call_path(name, key, located)
        journal = self.journal
        journal.index.mark_replayed(path)
        entry = journal.index.find(path)
        if person is None or (entry is not None and entry.answered is not None):
            return await self._ask(path, request, question, key)
        if entry is None or entry.asked is None:
            await journal.write('asked', path, key=key, value=request)
        answer = await person()
        await journal.write('answered', path, key=key, value=answer)
        return answer

    async def _start_once(
        self, path: str, key: str, entry: PathRecords | None, codec: Codec[T], opening: Json
    ) -> tuple[T] | None:
        """Record that the step starts. If it may have run before, ask a person; returns the value that they give."""
        if self._similar(path):
            await asyncio.sleep(0)  # calls made at the same time may replay them now
        journal, doubt = self.journal, await self._doubt(path, entry, opening)
        since = entry.started.seq if entry is not None and entry.started is not None else 0
        while doubt:
            request: Json = {'kind': 'uncertain', 'step': _step_name(path), 'question': doubt, 'opening': opening}
            answer = await self._ask(path, request, doubt, key, since=since)
            if isinstance(answer, dict) and answer.get('again') is True:
                break  # if the process dies again, the question is asked again
            if isinstance(answer, dict) and 'value' in answer:
                written: Json = {'p': answer['value']}
                with contextlib.suppress(NotDurable):
                    value = codec.read(written)
                    await journal.write('done', path, key=key, value=written)
                    return (value,)
            entry = journal.index.find(path)  # the answer has neither: ask again
            since = entry.answered.seq if entry is not None and entry.answered is not None else since
        await journal.write('started', path, key=key, value=opening)
        return None

    async def _doubt(self, path: str, entry: PathRecords | None, opening: Json) -> str:
        """The question to ask before the step starts; empty if it has certainly not run before."""
        name = _step_name(path)
        if entry is not None and entry.started is not None:
            how = 'failed' if entry.retried else 'was running when the process died'
            call, when = await self._shown(entry.started)
            return f'{call} {how}, and must not run twice. It started at {when}. Did it take effect?'
        similar = self._similar(path)
        if similar or (entry is not None and entry.asked is not None):
            calls = [f': {call} at {when}' for call, when in [await self._shown(record) for record in similar]]
            return (
                f'{name} must not run twice. It ran before the process died, but with different arguments'
                f'{"".join(calls)}. Now it would be {_call_text(opening) or name}. Does that call replace this one?'
            )
        return ''

    async def _shown(self, started: Record) -> tuple[str, str]:
        """The call and the time of the record of a start, as text."""
        call = _call_text(await self.journal.value_of(started)) or _step_name(started.path)
        return call, time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(started.at))

    def _similar(self, path: str) -> list[Record]:
        """The starts of calls of the same name that the code has not replayed yet."""
        if is_in_order(path):
            return []
        index = self.journal.index
        entries = [index.find(call) for call in index.unreplayed_calls(parent_of(path), _step_name(path))]
        return [entry.started for entry in entries if entry is not None and entry.started is not None]


def _call_text(opening: Json) -> str:
    return str(opening.get(CALL, '')) if isinstance(opening, dict) else ''


def _step_name(path: str) -> str:
    return name_of(path).partition('(')[0]


def _join(scope: str, name: str) -> str:
    return f'{scope}/{name}' if scope else name


@lru_cache(1024)
def _safe(name: str) -> str:
    """The name with reserved characters replaced, for a path."""
    return ''.join('_' if letter in '/#~(' or not letter.isprintable() else letter for letter in name) or '_'
