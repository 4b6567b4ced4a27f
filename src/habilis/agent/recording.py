"""A run of an agent and its journal: what was asked, run and called is written down, and answered from there later."""

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from habilis.agent.contract import Result, RunLimits, Waiting
from habilis.agent.output import OutputType
from habilis.agent.pausing import Pausing
from habilis.agent.records import DataCodec, ResultCodec, to_plain
from habilis.core import codec
from habilis.core.codec import Json
from habilis.core.errors import EmptyReply, NotDurable
from habilis.journal import Codec, Journal, Record, Scope, Status, current_scope, fingerprint
from habilis.journal.failures import StepFailed, failed_paths
from habilis.journal.index import name_of, parent_of
from habilis.models.contract import Reply
from habilis.tools import ApprovalRequest, Deny, GateCall
from habilis.tools.logs import lines_now

REPLY = DataCodec(Reply, what='a reply')
ASK = 'ask'
CELL = 'cell'
NO_STOP = 'no_stop'
Work = Callable[[], Awaitable[Any]]


@dataclass(frozen=True, kw_only=True)
class Resumed:
    """A run was gone on with after so many steps."""

    after: int
    answer: str | None = None
    limits: RunLimits | None = None


class Recorder:
    """Writes one run of an agent down, below one scope."""

    def __init__(
        self,
        scope: Scope,
        *,
        top: bool,
        task: str = '',
        notes: Sequence[Resumed] | None = None,
        no_stop: Iterable[int] = (),
    ) -> None:
        """A recorder.

        Args:
            scope: where it writes.
            top: whether the run of the journal is this one, not one around it.
            task: of the run.
            notes: where a run that was found was gone on with.
            no_stop: its steps that must not end it.
        """
        self._no_stop = frozenset(no_stop)
        self.scope = scope
        self.top = top
        self.resumes = notes is not None
        """Whether the run was found in a journal."""

        self.notes = list(notes or ())
        """Where the run was gone on with, and the replay has not come to yet."""

        self.goes_on = False
        """Whether it is known that the run goes on after the replay."""

        self._key = fingerprint(task)
        self._snapshots: dict[str, str] = {}
        self._pausing = Pausing()

    @property
    def journal(self) -> Journal:
        """Of the run."""
        return self.scope.journal

    @property
    def replaying(self) -> bool:
        """Whether the next step of the run was recorded."""
        return self.journal.index.first_unreplayed(self.scope.path) is not None

    @property
    def behind(self) -> bool:
        """Whether the record knows of more than has been replayed."""
        return self.goes_on or self.replaying or bool(self.notes)

    async def may_stop(self, step: int, wanted: bool) -> bool:
        """Whether this step may end the run. Where it must not, that is written down: a replay cannot know."""
        if not wanted and not self.replaying:
            await self.journal.write('noted', self.scope.path, value={NO_STOP: step})
        return wanted and step not in self._no_stop

    # Steps ------------------------------------------------------------------------------------------------------------

    async def ask(self, work: Callable[[], Awaitable[Reply]]) -> Reply:
        """A reply of the model. Prompts change between versions, so only another task counts as a change."""
        return await self.scope.step(ASK, work, key=self._key, codec=REPLY)

    async def _refuse_reply(self) -> None:
        """The last reply is worth nothing; the model is to be asked again when the run is resumed."""
        path = f'{self.scope.path}/{ASK}#{self.journal.scope_state(self.scope.path).names[ASK]}'
        await self.journal.write('voided', self.scope.path, value=[f'{path}/'])

    async def cell(
        self,
        code: str,
        work: Work,
        kind: Codec[Any],
        *,
        snapshot: Callable[[], Awaitable[Mapping[str, bytes]]],
        stop: Callable[[], None],
    ) -> Any:
        """A piece of code that was run, with the variables as it left them. `stop` ends it in the middle."""

        def replayed(record: Record) -> None:
            self._snapshots.update(record.attached)

        return await self.scope.step(
            CELL,
            lambda: self._pausing.watch(work(), stop),
            key=fingerprint(code),
            codec=kind,
            attach=snapshot,
            replayed=replayed,
        )

    async def snapshots(self) -> dict[str, bytes]:
        """The variables of the last cells that were answered from the record, once."""
        taken, self._snapshots = self._snapshots, {}
        return {name: await self.journal.store.blob(self.journal.run, digest) for name, digest in taken.items()}

    async def used_inside(self) -> list[Reply]:
        """What models replied to runs inside this one, in what is done and will not be gone through again."""
        index, prefix, found = self.journal.index, f'{self.scope.path}/', list[Reply]()
        for path, entry in index.inside(self.scope.path):
            around = parent_of(path)
            if name_of(path) != ASK or not around.startswith(prefix) or entry.end is None or entry.end.kind != 'done':
                continue
            while around != self.scope.path:
                outer = index.find(around)
                if outer is not None and outer.end is not None:
                    with contextlib.suppress(NotDurable):  # a step of somebody else's, by the same name
                        found.append(REPLY.read(await self.journal.value_of(entry.end)))
                    break
                around = parent_of(around)
        return [reply for reply in found if reply.model]

    # Tools ------------------------------------------------------------------------------------------------------------

    async def around_call(self, call: GateCall, once: bool, work: Work) -> object:
        """A tool call: answered from the record, or made and recorded."""
        scope = current_scope() or self.scope
        key = fingerprint(call.tool, call.arguments)
        try:
            return await self._pausing.call(
                lambda: scope.call(call.tool, work, key=key, codec=_ToolResult(call), once=once)
            )
        except StepFailed as failed:
            raise _as_it_was(failed) from None

    async def approve(
        self, request: ApprovalRequest, person: Callable[[], Awaitable[bool | Deny]] | None
    ) -> bool | Deny:
        """Whether a person allows a call. Without one who is there, the run pauses until somebody answers."""
        scope = current_scope() or self.scope
        asked: dict[str, Json] = {
            'kind': 'approval',
            'tool': request.tool,
            'arguments': codec.pack(to_plain(request.arguments)),
            'question': request.question,
            'diff': request.diff,
        }
        name, key = f'approve {request.tool}', fingerprint(request.tool, request.arguments)
        answer = await self._pausing.call(
            lambda: scope.decide(name, asked, question=request.question, key=key, person=person and _written(person))
        )
        reason = _field(answer, 'reason')
        approved = answer is True or _field(answer, 'approved') is True
        return Deny(reason) if isinstance(reason, str) and not approved else approved

    # The run ----------------------------------------------------------------------------------------------------------

    async def open(self, inputs: object) -> None:
        """The run begins with this."""
        entry = self.journal.index.find(self.scope.path)
        if entry is None or entry.opened is None:
            await self.journal.write('opened', self.scope.path, value=codec.pack(to_plain(inputs)))

    async def resumed(self, how: Resumed) -> None:
        """The run is gone on with."""
        await self.journal.write('noted', self.scope.path, value={'resumed': codec.pack(to_plain(how))})

    async def ended(self, result: Result[Any], output: OutputType) -> None:
        """The run has stopped with this."""
        if not self.top or self.behind:
            return
        if result.ended == 'answer':
            await self.journal.write('done', self.scope.path, value=ResultCodec(output).write(result))
        waiting = result.ended in {'question', 'approval'}
        status: Status = 'done' if result.ended == 'answer' else 'waiting' if waiting else 'stopped'
        value: dict[str, Json] = {'ended': result.ended}
        if result.question is not None:
            value['question'] = result.question
        await self.journal.end(status, value=value)

    async def finish(self) -> None:
        """The run has its result; its process may have died before it could say that this was the end."""
        if self.journal.info.status != 'done':
            await self.journal.end('done', value={'ended': 'answer'})

    async def failed(self, error: BaseException) -> None:
        """The run was ended by this."""
        if isinstance(error, EmptyReply):
            await self._refuse_reply()
        if self.top:
            stopped = not isinstance(error, Exception)
            text = '' if stopped else f'{type(error).__name__}: {error}'
            await self.journal.end('stopped' if stopped else 'failed', failed=failed_paths(error), error=text)

    async def close(self) -> None:
        """Let others go on with the run."""
        if self.top:
            await self.journal.close()

    def waiting(self) -> tuple[Waiting, ...]:
        """What people are asked."""
        return tuple(
            Waiting(path=path, question=str(_field(request, 'question')), tool=str(_field(request, 'tool') or ''))
            for path, request in self.journal.waiting.items()
        )


class _ToolResult(Codec[object]):
    """What a tool gave back: it is plain data by now, or the sandbox could not have it. Readers see its arguments.

    What it has logged is told to the model with it, so it is kept too.
    """

    def __init__(self, call: GateCall) -> None:
        super().__init__()
        self._call = call

    def write(self, value: object) -> Json:
        written: dict[str, Json] = {
            'p': codec.pack(to_plain(value)),
            'given': codec.pack(to_plain(self._call.arguments)),
        }
        return {**written, 'log': list(lines)} if (lines := lines_now()) else written

    def read(self, written: Json) -> object:
        logged = _field(written, 'log')
        lines_now().extend(str(line) for line in (logged if isinstance(logged, list) else ()))
        return super().read(written)

    def kept(self, value: object, written: Json) -> object:
        return super().read(written)  # its lines are there


def _as_it_was(failed: StepFailed) -> Exception:
    """An error whose class cannot be had here, by the name that the code knows it by."""
    name, _, text = str(failed).partition(': ')
    name = name.rpartition('.')[2]
    return type(name, (StepFailed,), {})(text) if name.isidentifier() else failed


def _written(person: Callable[[], Awaitable[bool | Deny]]) -> Callable[[], Awaitable[Json]]:
    """What a person says, as it is recorded."""

    async def ask() -> Json:
        said = await person()
        return {'approved': False, 'reason': said.reason} if isinstance(said, Deny) else said

    return ask


def _field(request: Json, name: str) -> Json:
    return request.get(name) if isinstance(request, dict) else None
