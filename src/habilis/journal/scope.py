"""`Scope`: a place in the journal of a run. Steps that are taken there are answered from the record, or recorded."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextvars import ContextVar, Token
from copy import deepcopy
from functools import lru_cache
from typing import TypeVar
from weakref import WeakKeyDictionary

from habilis.core.codec import Json
from habilis.core.errors import JournalError, NotDurable
from habilis.journal.contract import Record
from habilis.journal.failures import marked
from habilis.journal.index import BRANCH, Entry, is_in_order, name_of, parent_of
from habilis.journal.journal import Journal
from habilis.journal.raised import read_error, write_error
from habilis.journal.values import PLAIN, Codec, fingerprint

T = TypeVar('T')
Attach = Callable[[], Awaitable[Mapping[str, bytes]]]
"""Gives what is kept with a record: blobs by name."""


class Paused(BaseException):
    """The run waits for a person. Not an `Exception`, so that no `except` of a flow takes it for a failure."""

    def __init__(self, path: str, question: str) -> None:
        super().__init__(question)
        self.path = path
        self.question = question


_current: ContextVar['Scope | None'] = ContextVar('habilis_scope', default=None)


def current_scope() -> 'Scope | None':
    """Where the running code is in the journal; None outside any journal."""
    return _current.get()


def scope_here() -> 'Scope | None':
    """Where a step that is taken now is recorded. None outside of a journal, and on another event loop than its own."""
    scope = _current.get()
    return scope if scope is not None and scope.journal.loop is asyncio.get_running_loop() else None


class Scope:
    """A place in the journal of a run: steps that are taken here get paths below it."""

    def __init__(self, journal: Journal, path: str) -> None:
        self.journal = journal
        self.path = path

    def __repr__(self) -> str:
        return f'<scope {self.path or "/"} of {self.journal.run}>'

    @contextlib.contextmanager
    def entered(self) -> Generator['Scope']:
        """What runs inside is here. The steps of this task follow one another; other tasks get branches."""
        token = self._enter()
        try:
            yield self
        finally:
            _current.reset(token)

    def _enter(self) -> 'Token[Scope | None]':
        self.journal.place(self.path).owner = asyncio.current_task()
        return _current.set(self)

    @contextlib.contextmanager
    def outside(self) -> Generator[None]:
        """What runs inside is in no journal."""
        token = _current.set(None)
        try:
            yield
        finally:
            _current.reset(token)

    # Paths ------------------------------------------------------------------------------------------------------------

    def below(self, name: str, *, key: str = '') -> 'Scope':
        """The next scope of that name: only what happens inside is recorded, and with it the key, to find it by."""
        path = self._next(_safe(name), key)
        journal = self.journal
        journal.index.take(path)
        journal.keyed(path, key)
        journal.place(path).owner = asyncio.current_task()
        return Scope(journal, path)

    def branch(self, number: int) -> 'Scope':
        """A parallel branch of this scope. Use either these, or leave it to the tasks; not both in one scope."""
        path = _join(self.path, f'{BRANCH}{number}')
        self.journal.index.take(path)
        self.journal.index.count_branch(self.path, number)
        return Scope(self.journal, path)

    def _next(self, name: str, key: str) -> str:
        scope = self._of_task(name, key)
        return _join(scope, f'{name}#{self.journal.place(scope).count(name)}')

    def _of_task(self, name: str, key: str) -> str:
        """This scope, or the branch of it that belongs to the running task."""
        place, task = self.journal.place(self.path), asyncio.current_task()
        if place.owner is None:
            place.owner = task
        if task is None or task is place.owner:
            return self.path
        if place.branches is None:
            place.branches = WeakKeyDictionary()
        known = place.branches.get(task)
        if known is None:
            known = place.branches[task] = self._branch_from(name, key)
        return known

    def _branch_from(self, name: str, key: str) -> str:
        """The recorded branch that began with this step, or a new one. Tasks may begin in another order than before."""
        index = self.journal.index
        branch = index.branch_from(self.path, name, key) or index.new_branch(self.path)
        index.take(branch)
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
        once: bool = False,
        attach: Attach | None = None,
        replayed: Callable[[Record], None] | None = None,
    ) -> T:
        """What the record says came of this step; if there is none yet, do the work and record it.

        Args:
            name: of the step; its number in this scope is added.
            work: what to do. Steps inside it are recorded below this one, and need not be done again either.
            key: a digest of what goes in (`fingerprint`).
            codec: how the value is written down.
            opening: what goes in, for readers of the record.
            once: never begin it a second time: if it was under way when the process died, a person is asked.
            attach: called after the work: blobs to keep with its record.
            replayed: called instead of the work, with the record.
        """
        path = self._next(_safe(name), key)
        return await self._step(path, work, key, codec, opening, once, attach, replayed)

    async def call(
        self, name: str, work: Callable[[], Awaitable[T]], *, key: str, codec: Codec[T] = PLAIN, once: bool = False
    ) -> T:
        """The same for steps that come in any order, from any task: they are found by what they were given."""
        return await self._step(self._called(name, key), work, key, codec, None, once)

    def _called(self, name: str, key: str) -> str:
        """The path of a call: the next one with these arguments."""
        label = f'{_safe(name)}({key if key.isalnum() else fingerprint(key)})'
        return _join(self.path, f'{label}#{self.journal.place(self.path).count(label)}')

    async def _step(
        self,
        path: str,
        work: Callable[[], Awaitable[T]],
        key: str,
        codec: Codec[T],
        opening: Json,
        once: bool,
        attach: Attach | None = None,
        replayed: Callable[[Record], None] | None = None,
    ) -> T:
        journal = self.journal
        entry = journal.index.ended(path, key) or await self._fitting(path, key)
        if entry is not None and entry.end is not None:
            end = entry.end
            written = await journal.value_of(end) if end.blob else end.value
            if end.kind == 'failed':
                raise marked(read_error(written), path)
            if replayed is not None:
                replayed(end)
            return codec.read(written)
        if journal.is_halted(path):
            raise Paused(path, 'the work around it has stopped')
        await journal.begin()
        if once:
            outcome = await self._begin_once(path, key, entry, codec, opening)
            if outcome is not None:
                return outcome[0]
        elif opening is not None and (entry is None or entry.opened is None):
            await journal.write('opened', path, key=key, value=opening)
        journal.begun(path, once=once, key='' if once else key)
        try:
            value, blobs = await self._do(path, work, key, attach)
            written = codec.write(value)
            await journal.write('done', path, key=key, value=written, attached=blobs)
        finally:
            journal.over(path)
        return codec.kept(value, written)

    async def _do(
        self, path: str, work: Callable[[], Awaitable[T]], key: str, attach: Attach | None
    ) -> tuple[T, Mapping[str, bytes] | None]:
        """The work of a step, in the scope of that step. What it raises is recorded."""
        journal = self.journal
        try:
            token = Scope(journal, path)._enter()
            try:
                value = await work()
            finally:
                _current.reset(token)
            await self._all_asked_for(path)
            return value, None if attach is None else await attach()
        except JournalError:
            raise
        except asyncio.CancelledError:
            journal.cut_off(parent_of(path), path, key)
            raise
        except Exception as error:
            await journal.write('failed', path, key=key, value=write_error(error))
            raise marked(error, path)  # noqa: B904

    @contextlib.asynccontextmanager
    async def group(self, name: str, *, key: str = '', opening: Json = True) -> AsyncGenerator['Scope']:
        """A scope that is recorded like a step, but without a value: on replay its steps are asked for again."""
        journal, path = self.journal, self._next(_safe(name), key)
        entry = await self._fitting(path, key)
        end = None if entry is None else entry.end
        if end is not None and end.kind == 'failed':
            raise marked(read_error(await journal.value_of(end)), path)
        if end is None and journal.is_halted(path):
            raise Paused(path, 'the work around it has stopped')
        if entry is None or entry.opened is None:
            await journal.write('opened', path, key=key, value=opening)
        inside = Scope(journal, path)
        try:
            with inside.entered():
                yield inside
            await inside.left()
        except JournalError:
            raise
        except asyncio.CancelledError:
            journal.cut_off(parent_of(path), path, key)
            raise
        except Exception as error:
            await journal.write('failed', path, key=key, value=write_error(error))
            raise marked(error, path)  # noqa: B904
        if end is None:
            await journal.write('done', path, key=key)

    async def left(self) -> None:
        """This scope ends. Raises `RunChanged` if something was recorded here that the code has not asked for."""
        await self._all_asked_for(self.path)

    async def _fitting(self, path: str, key: str) -> Entry | None:
        """What is recorded of this step, if the record fits the code."""
        journal = self.journal
        index = journal.index
        index.take(path)
        entry = index.find(path)
        if entry is not None and entry.key not in {None, key}:
            left = [path, *(index.left_in(parent_of(path)) if is_in_order(path) else [])]
            await journal.diverge(parent_of(path), left, f'{path} was recorded with other arguments')
            return None
        if entry is None or (entry.end is None and entry.answered is None):
            left = self._in_the_way(path) if is_in_order(path) else []
            if left:
                await journal.diverge(parent_of(left[0]), left, f'{path} begins, where {left[0]} was recorded')
            if journal.place(parent_of(path)).cut:
                await self._go_on_after(parent_of(path))
        return entry

    async def _go_on_after(self, scope: str) -> None:
        """Code that goes on after a step was cancelled (a time limit around it) has to do so on replay too."""
        journal, task = self.journal, asyncio.current_task()
        place = journal.place(scope)
        if not place.cut or task is None or task is not place.owner:
            return
        if task.cancelling():  # it does not go on, it puts things in order; it will come here again when it is resumed
            raise asyncio.CancelledError
        cut, place.cut = place.cut, None
        for path, key in cut.items():
            error = TimeoutError(f'{path} was cancelled, and the code went on')
            await journal.write('failed', path, key=key, value=write_error(error))

    def _in_the_way(self, path: str) -> list[str]:
        """What was recorded, and this task should have asked for before it begins something new."""
        journal, task = self.journal, asyncio.current_task()
        path = parent_of(path)
        left = journal.index.left_in(path)
        while path and not left and is_in_order(path) and journal.place(parent_of(path)).owner is task:
            path = parent_of(path)
            left = journal.index.left_in(path)
        return left

    async def _all_asked_for(self, path: str) -> None:
        """A scope that ends must have asked for all that was recorded in it."""
        index = self.journal.index
        left = [*index.left_in(path), *index.branches_in(path)]
        if left:
            await self.journal.diverge(path, left, f'{path} ends without {left[0]}, which was recorded')

    # People -----------------------------------------------------------------------------------------------------------

    async def ask(self, name: str, request: Json, *, question: str, key: str = '') -> Json:
        """What a person has answered. Raises `Paused` while there is no answer: the run stops until there is one."""
        path = self._next(_safe(name), key)
        await self._fitting(path, key)
        return await self._ask(path, request, question, key)

    async def _ask(self, path: str, request: Json, question: str, key: str, *, since: int = 0) -> Json:
        """What was answered after the record of this number."""
        journal = self.journal
        entry = journal.index.find(path)
        if entry is not None and entry.answered is not None and entry.answered.seq > since:
            return deepcopy(await journal.value_of(entry.answered))
        if entry is None or entry.asked is None or entry.asked.seq < since:
            await journal.write('asked', path, key=key, value=request)
        journal.waiting[path] = request
        raise Paused(path, question)

    async def decide(
        self, name: str, request: Json, *, question: str, key: str, person: Callable[[], Awaitable[Json]] | None = None
    ) -> Json:
        """The same as `ask` for questions that come in any order, found by `key`; a `person` who is there is asked."""
        path = self._called(name, key)
        journal = self.journal
        journal.index.take(path)
        entry = journal.index.find(path)
        if person is None or (entry is not None and entry.answered is not None):
            return await self._ask(path, request, question, key)
        answer = await person()
        await journal.write('asked', path, key=key, value=request)
        await journal.write('answered', path, key=key, value=answer)
        return answer

    async def _begin_once(
        self, path: str, key: str, entry: Entry | None, codec: Codec[T], opening: Json
    ) -> tuple[T] | None:
        """Mark that it begins. If it, or one like it, has begun before, what became of it is for a person to say."""
        if self._like(path):
            await asyncio.sleep(0)  # they may be those of calls that are made at the same time, which take them now
        journal, doubt = self.journal, self._doubt(path, entry)
        since = entry.started.seq if entry is not None and entry.started is not None else 0
        while doubt:
            request: Json = {'kind': 'uncertain', 'step': name_of(path).partition('(')[0], 'question': doubt}
            answer = await self._ask(path, request, doubt, key, since=since)
            if isinstance(answer, dict) and answer.get('again') is True:
                break  # should the process die again, it is asked again
            if isinstance(answer, dict) and 'value' in answer:
                written: Json = {'p': answer['value']}
                with contextlib.suppress(NotDurable):
                    value = codec.read(written)
                    await journal.write('done', path, key=key, value=written)
                    return (value,)
            entry = journal.index.find(path)  # an answer that says nothing: ask again
            since = entry.answered.seq if entry is not None and entry.answered is not None else since
        await journal.write('started', path, key=key, value=opening)
        return None

    def _doubt(self, path: str, entry: Entry | None) -> str:
        """What a person has to be asked before it begins; nothing if it is certain that it has not been done."""
        what = name_of(path).partition('(')[0]
        if entry is not None and entry.started is not None:
            how = 'failed' if entry.retried else 'was under way when the process died'
            return f'{what} {how}, and must not be done twice. Has it been done?'
        if (entry is not None and entry.asked is not None) or self._like(path):
            return (
                f'{what} must not be done twice. It was done before the process died, but with other arguments than '
                'now. Was that instead of this?'
            )
        return ''

    def _like(self, path: str) -> list[str]:
        """Calls of the same name that were recorded here, and that the code has not made again."""
        label = path.rpartition('/')[2].partition('(')[0]
        return self.journal.index.calls_left_in(parent_of(path), label)


def _join(scope: str, name: str) -> str:
    return f'{scope}/{name}' if scope else name


@lru_cache(1024)
def _safe(name: str) -> str:
    """A name as part of a path."""
    return ''.join('_' if letter in '/#~(' or not letter.isprintable() else letter for letter in name) or '_'
