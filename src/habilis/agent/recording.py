"""A run of an agent and its journal: what was asked, run and called is written down, and answered from there later."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from habilis.agent.contract import Result, RunLimits, Waiting
from habilis.agent.output import OutputType
from habilis.agent.records import DataCodec, ResultCodec, to_plain
from habilis.core import codec
from habilis.core.codec import Json
from habilis.journal import Codec, Journal, Paused, Record, Scope, Status, current_scope, fingerprint
from habilis.journal.scope import failed_paths
from habilis.models.contract import Message, Reply
from habilis.tools import ApprovalRequest, GateCall

REPLY = DataCodec(Reply, what='a reply')
ASK = 'ask'
CELL = 'cell'
Work = Callable[[], Awaitable[Any]]


@dataclass(frozen=True, kw_only=True)
class Resumed:
    """A run was gone on with after so many steps."""

    after: int
    answer: str | None = None
    limits: RunLimits | None = None


class Recorder:
    """Writes one run of an agent down, below one scope."""

    def __init__(self, scope: Scope, *, top: bool) -> None:
        self.scope = scope
        self.top = top
        """Whether the run of the journal is this one, and not one around it."""

        self._snapshots: Mapping[str, str] = {}
        self._pausing = asyncio.Event()
        self._paused: list[Paused] = []
        self._calling = 0

    @property
    def journal(self) -> Journal:
        """Of the run."""
        return self.scope.journal

    @property
    def replaying(self) -> bool:
        """Whether the next step of the run was recorded."""
        return self.journal.index.first_in(self.scope.path) is not None

    # Steps ------------------------------------------------------------------------------------------------------------

    async def ask(self, messages: Sequence[Message], work: Callable[[], Awaitable[Reply]]) -> Reply:
        """A reply of the model. The system prompt may change between versions; what was said may not."""
        said = [(message.role, message.text) for message in messages if message.role != 'system']
        return await self.scope.step(ASK, work, key=fingerprint(said), codec=REPLY)

    async def cell(
        self, code: str, work: Work, kind: Codec[Any], snapshot: Callable[[], Awaitable[Mapping[str, bytes]]]
    ) -> Any:
        """A piece of code that was run, with the variables as it left them."""

        def replayed(record: Record) -> None:
            self._snapshots = record.attached

        return await self.scope.step(
            CELL,
            lambda: self._until_paused(work()),
            key=fingerprint(code),
            codec=kind,
            attach=snapshot,
            replayed=replayed,
        )

    async def snapshots(self) -> dict[str, bytes]:
        """The variables of the last cell that was answered from the record, once."""
        taken, self._snapshots = self._snapshots, {}
        return {name: await self.journal.store.blob(self.journal.run, digest) for name, digest in taken.items()}

    async def _until_paused(self, work: Awaitable[Any]) -> Any:
        """A cell whose tool waits for a person is stopped when the other calls are done; it is run again later."""
        self._pausing.clear()
        self._paused.clear()
        running, pausing = asyncio.ensure_future(work), asyncio.ensure_future(self._pausing.wait())
        try:
            await asyncio.wait((running, pausing), return_when=asyncio.FIRST_COMPLETED)
            if running.done() and not self._paused:
                return running.result()
            raise self._paused[0]
        finally:
            for task in (running, pausing):
                task.cancel()
            await asyncio.gather(running, pausing, return_exceptions=True)

    # Tools ------------------------------------------------------------------------------------------------------------

    async def around_call(self, call: GateCall, once: bool, work: Work) -> object:
        """A tool call: answered from the record, or made and recorded."""
        scope = current_scope() or self.scope
        key = _key(call)
        self._calling += 1
        try:
            return await scope.call(call.tool, work, key=key, codec=TOOL_RESULT, once=once)
        except Paused as paused:
            return await self._wait_for_the_end(scope, paused)
        finally:
            self._leave_call()

    async def approve(self, request: ApprovalRequest, person: Callable[[], Awaitable[bool]] | None) -> bool:
        """Whether a person allows a call. Without one who is there, the run pauses until somebody answers."""
        scope = current_scope() or self.scope
        asked: dict[str, Json] = {
            'kind': 'approval',
            'tool': request.tool,
            'arguments': codec.pack(to_plain(request.arguments)),
            'question': request.question,
            'diff': request.diff,
        }
        key = fingerprint(request.tool, to_plain(request.arguments))
        self._calling += 1
        try:
            answer = await scope.decide(
                f'approve {request.tool}', asked, question=request.question, key=key, person=person
            )
        except Paused as paused:
            return bool(await self._wait_for_the_end(scope, paused))
        finally:
            self._leave_call()
        return answer is True

    async def _wait_for_the_end(self, scope: Scope, paused: Paused) -> object:
        """The code that called must not see the pause: it waits until it is stopped."""
        if scope.path == self.scope.path:  # the model has called; nothing has to be stopped
            raise paused
        self._paused.append(paused)
        self._calling -= 1
        try:
            if self._calling == 0:
                self._pausing.set()
            await asyncio.get_running_loop().create_future()
        finally:
            self._calling += 1
        return None

    def _leave_call(self) -> None:
        self._calling -= 1
        if self._paused and self._calling == 0:
            self._pausing.set()

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
        if not self.top or self.replaying:
            return
        if result.ended == 'answer':
            await self.journal.write('done', self.scope.path, value=ResultCodec(output).write(result))
        waiting = result.ended in {'question', 'approval'}
        status: Status = 'done' if result.ended == 'answer' else 'waiting' if waiting else 'stopped'
        value: dict[str, Json] = {'ended': result.ended}
        if result.question is not None:
            value['question'] = result.question
        await self.journal.end(status, value=value)

    async def failed(self, error: BaseException) -> None:
        """The run was ended by this."""
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
    """What a tool gave back: it is plain data by now, or the sandbox could not have it."""

    def write(self, value: object) -> Json:
        return {'p': codec.pack(to_plain(value))}


TOOL_RESULT = _ToolResult()


def _key(call: GateCall) -> str:
    return fingerprint(call.tool, to_plain(call.arguments))


def _field(request: Json, name: str) -> Json:
    return request.get(name) if isinstance(request, dict) else None
