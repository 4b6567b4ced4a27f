"""Records the run of an agent: replies, cells, verdicts, tool calls and the result. A replay reads them back."""

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from habilis.agent.context.output import OutputType
from habilis.agent.contract import Ended, Result, Waiting
from habilis.agent.durable.approvals import add_grants, recorded_answer
from habilis.agent.durable.audit import CallRecords, times_of
from habilis.agent.durable.cells import CELL_CODEC, CellOutcome, RecordedCell
from habilis.agent.durable.pause import Pause
from habilis.agent.durable.records import (
    APPROVE,
    ASK,
    ASKED,
    CALL_ID,
    CELL,
    CHECKPOINT_CODEC,
    CODE,
    COMPACTION,
    FILES,
    INPUTS_CODEC,
    INSTRUCTIONS,
    MAX_CODE_LENGTH,
    MESSAGES,
    NO_STOP,
    PROMPT,
    PROMPT_CODEC,
    REPLY_CODEC,
    RESUMED,
    RESUMED_CODEC,
    VALIDATED,
    VERDICT,
    VERDICT_CODEC,
    Checkpoint,
    Inputs,
    Prompt,
    Resumed,
    code_around,
    code_of,
)
from habilis.agent.durable.results import RecordedResult, RecordedTurn, ResultCodec, record_messages, record_result
from habilis.agent.policies.contract import Verdict
from habilis.core import codec
from habilis.core.approval import Approval
from habilis.core.codec import Json
from habilis.core.dataclass_codec import pack_or_repr
from habilis.core.errors import EmptyReply, JournalError, NotDurable, RunStopped
from habilis.core.integers import error_text
from habilis.core.narrowing import fields_in
from habilis.core.previews import RESULT_LENGTH, shorten
from habilis.journal import Codec, Journal, Record, Scope, Status, current_scope, fingerprint
from habilis.journal.failures import failed_paths
from habilis.journal.index import name_of, parent_of
from habilis.journal.runs import is_import_note
from habilis.journal.scope import ARGUMENTS, CALL
from habilis.models.contract import Reply
from habilis.tools import ApprovalRequest, GateCall
from habilis.tools.attempts import on_thread
from habilis.tools.contract import PREVIEW
from habilis.tools.grants import Grants
from habilis.tools.logs import ToolChannel, current_channel, lines_now

T = TypeVar('T')
Work = Callable[[], Awaitable[T]]
_JSON: Codec[Json] = Codec()


class Recorder:
    """Records one run of an agent, below one scope of the journal."""

    def __init__(
        self,
        scope: Scope,
        *,
        top: bool,
        task: str = '',
        notes: Sequence[Resumed] | None = None,
        no_stop: Iterable[int] = (),
    ) -> None:
        """`top` is False for a run that is nested in the run of the journal, and `notes` are the earlier resumes of a
        run that was loaded, None for a new one. Steps with the numbers `no_stop` must not end the run.
        """
        self._no_stop = frozenset(no_stop)
        self.scope = scope
        self.top = top
        self.resumes = notes is not None
        """Whether the run was loaded from a journal."""

        self.notes = list(notes or ())
        """Earlier resumes that the replay has not reached yet."""

        self.will_continue = False
        """Whether the run will continue after the replay."""

        self.grants = Grants()
        """What people have approved beyond one call: those of the toolbox, to which replayed cells add theirs."""

        self._is_foreign = any(map(is_import_note, scope.journal.loaded))
        """Whether the run was imported: then answers in its record hold for their own calls only."""

        self._key = fingerprint(task)
        self._snapshots: dict[str, str] = {}
        self._pause = Pause()
        self._turns: list[RecordedTurn] = []
        """The replies so far, with the paths of their records."""

        self._calls = CallRecords(scope.journal.index, scope.journal.value_of, scope.path)

    @property
    def journal(self) -> Journal:
        """The journal of the run."""
        return self.scope.journal

    @property
    def is_replaying(self) -> bool:
        """Whether the next step of the run is in the record."""
        return self.journal.index.first_unreplayed(self.scope.path) is not None

    @property
    def is_at_failed_request(self) -> bool:
        """Whether the next step starts with a request that failed, and is made again."""
        path = self.journal.index.first_unreplayed(self.scope.path)
        entry = None if path is None else self.journal.index.find(path)
        return path is not None and name_of(path) == ASK and entry is not None and entry.end is None

    @property
    def is_behind(self) -> bool:
        """Whether part of the record was not replayed yet."""
        return self.will_continue or self.is_replaying or bool(self.notes)

    def continues_after(self, ended: Ended) -> bool:
        """Whether the run goes on after this end, so that it is not recorded again. An answer is always the last."""
        return self.is_behind if ended != 'answer' else self.is_replaying or bool(self.notes)

    async def can_stop(self, step: int, allowed: bool) -> bool:
        """Whether this step may end the run. If not, that is recorded: a replay could not know."""
        if not allowed and not self.is_replaying:
            await self.journal.write('noted', self.scope.path, value={NO_STOP: step})
        return allowed and step not in self._no_stop

    # Steps ------------------------------------------------------------------------------------------------------------

    async def ask(self, work: Work[Reply]) -> Reply:
        """A reply of the model. The key is the task alone: prompts change between versions."""
        paths: list[str] = []
        reply = await self.scope.step(ASK, work, key=self._key, codec=REPLY_CODEC, located=paths.append)
        self._turns.append(RecordedTurn(path=paths[0], reply=reply))
        self.journal.cost += reply.usage.cost or 0.0
        return reply

    @property
    def is_at_summary(self) -> bool:
        """Whether the next step of the record is a summary of the steps before it."""
        path = self.journal.index.first_unreplayed(self.scope.path)
        return path is not None and name_of(path) == COMPACTION

    async def summary(self, work: Work[Reply]) -> Reply:
        """The summary that the model wrote of earlier steps."""
        reply = await self.scope.step(COMPACTION, work, key=self._key, codec=REPLY_CODEC)
        self.journal.cost += reply.usage.cost or 0.0
        return reply

    async def _refuse_reply(self) -> None:
        """Void the last reply: a resumed run asks the model again."""
        await self.journal.write('voided', self.scope.path, value=[f'{self._turns[-1].path}/'])

    async def verdict(self, decide: Callable[[], Verdict]) -> Verdict:
        """The verdict of the policy about a reply. A replay returns the recorded one, even with another policy."""

        async def work() -> Verdict:
            return decide()

        paths: list[str] = []
        verdict = await self.scope.step(VERDICT, work, key=self._key, codec=VERDICT_CODEC, located=paths.append)
        self._turns[-1].texts.append((paths[0], verdict.note))
        return verdict

    @property
    def was_validated(self) -> bool:
        """Whether the record has the next outcome of the output validators."""
        number = self.journal.scope_state(self.scope.path).names.get(VALIDATED, 0) + 1
        return self.journal.index.find(f'{self.scope.path}/{VALIDATED}#{number}') is not None

    async def validated(self, work: Work[Json]) -> Json:
        """The outcome of the output validators."""
        outcome = await self.scope.step(VALIDATED, work, key=self._key, codec=_JSON)
        turn = self._turns[-1]
        turn.refused = str(_field(outcome, 'refused') or turn.refused)
        return outcome

    async def cell(
        self,
        code: str,
        work: Work[CellOutcome],
        *,
        snapshot: Callable[[], Awaitable[Mapping[str, bytes]]],
    ) -> CellOutcome:
        """The outcome of a cell, recorded with a snapshot of the variables after it."""

        paths, records = list[str](), list[Record]()

        async def recorded() -> RecordedCell:
            outcome = await self._pause.watch(work())
            entry = self.journal.index.find(paths[0])
            calls = [await self._calls.refer(call) for call in outcome.cell.calls]
            return RecordedCell(outcome=outcome, calls=calls, has_code=entry is None or code_of(entry) != code)

        found = await self.scope.step(
            CELL,
            recorded,
            key=fingerprint(code),
            codec=CELL_CODEC,
            inside={CODE: code[:MAX_CODE_LENGTH]},
            attach=snapshot,
            replayed=records.append,
            located=paths.append,
        )
        outcome = found.outcome
        if records:
            if not self._is_foreign:
                await add_grants(self.grants, self.journal.index, self.journal.value_of, paths[0])
            self._snapshots.update(records[0].attached)
            calls = [await self._calls.resolve(reference) for reference in found.calls]
            outcome = replace(outcome, code=code, cell=replace(outcome.cell, calls=tuple(calls)))
        self._turns[-1].texts.append((paths[0], outcome.observation))
        return outcome

    async def snapshots(self) -> dict[str, bytes]:
        """Snapshots of the last replayed cell by sandbox; each is returned once."""
        taken, self._snapshots = self._snapshots, {}
        return {name: await self.journal.store.blob(self.journal.run, digest) for name, digest in taken.items()}

    async def used_inside(self) -> list[Reply]:
        """Replies of nested runs that are finished, which a replay does not repeat."""
        replies: list[Reply] = []
        for path, entry in self.journal.index.inside(self.scope.path):
            if name_of(path) not in {ASK, COMPACTION} or entry.end is None or entry.end.kind != 'done':
                continue
            if self._is_in_finished_step(path):
                with contextlib.suppress(NotDurable):  # a step of a flow with the same name
                    replies.append(REPLY_CODEC.read(await self.journal.value_of(entry.end)))
        return [reply for reply in replies if reply.model]

    def _is_in_finished_step(self, path: str) -> bool:
        """Whether a step around this one, inside the run, has ended."""
        parent = parent_of(path)
        while parent != self.scope.path:
            entry = self.journal.index.find(parent)
            if entry is not None and entry.end is not None:
                return True
            parent = parent_of(parent)
        return False

    # Tools ------------------------------------------------------------------------------------------------------------

    async def around_call(self, call: GateCall, once: bool, work: Work[object]) -> object:
        """The result of a tool call: from the record, or of a live call, which is recorded."""
        scope, key = current_scope() or self.scope, fingerprint(call.tool, call.arguments)
        channel = None if call.tool.startswith(PREVIEW) else current_channel()
        given = ', '.join(f'{name}={shorten(value, RESULT_LENGTH)}' for name, value in call.arguments.items())
        opening: dict[str, Json] = {CALL: f'{call.tool}({given})', ARGUMENTS: pack_or_repr(call.arguments)}
        if channel is not None:
            opening |= {CALL_ID: call.id, **({ASKED: channel.path} if channel.path else {})}
        paths: list[str] = []
        try:
            return await self._pause.call(
                lambda: scope.call(
                    call.tool, work, key=key, codec=TOOL_RESULT, opening=opening, once=once, located=paths.append
                )
            )
        finally:
            self._locate(channel, paths)

    def _locate(self, channel: ToolChannel | None, paths: Sequence[str]) -> None:
        """Tell a call where its record is, and the time that it has there."""
        entry = self.journal.index.find(paths[-1]) if paths else None
        if channel is not None and entry is not None:
            channel.path = paths[-1]
            channel.at, channel.seconds = times_of(entry)

    async def approve(self, request: ApprovalRequest, person: Callable[[], Awaitable[Approval]] | None) -> Approval:
        """Whether a person allows a call. If `person` is None, the run pauses until somebody answers."""
        scope = current_scope() or self.scope
        asked: dict[str, Json] = {
            'kind': 'approval',
            'tool': request.tool,
            CALL_ID: request.id,
            ARGUMENTS: pack_or_repr(request.arguments),
            'question': request.question,
            'diff': request.diff,
        }
        name, key = f'{APPROVE}{request.tool}', fingerprint(request.tool, request.arguments)
        ask, question, paths = person and _as_json(person), request.question, list[str]()
        answer = await self._pause.call(
            lambda: scope.decide(name, asked, question=question, key=key, person=ask, located=paths.append)
        )
        self._locate(current_channel(), paths)
        approval = recorded_answer(answer)
        return replace(approval, scope='once') if self._is_foreign else approval

    # The run ----------------------------------------------------------------------------------------------------------

    async def open(self, inputs: Inputs, prompt: Prompt) -> None:
        """Record the prompt, and the inputs of a nested run; those of other runs are recorded when they are created."""
        entry = self.journal.index.find(self.scope.path)
        if not self.top and (entry is None or entry.opened is None):
            inputs = replace(inputs, system=prompt.system, asked=prompt.asked)
            await self.journal.write('opened', self.scope.path, value=INPUTS_CODEC.write(inputs))
        if await self.situation() is None:
            await self.journal.write('noted', self.scope.path, value={PROMPT: PROMPT_CODEC.write(prompt)})

    async def situation(self) -> str | None:
        """The `situation` of the prompt in the record; None if the run has none yet."""
        for record in self.journal.loaded:
            value = await self.journal.value_of(record) if self._is_note(record) else None
            if isinstance(value, dict) and PROMPT in value:
                return PROMPT_CODEC.read(value[PROMPT]).situation
        return None

    async def instructions(self, evaluate: Callable[[], Awaitable[str]]) -> str:
        """The instructions of this run: those of its record, or what `evaluate` returns, which is recorded."""
        for record in self.journal.loaded:
            value = await self.journal.value_of(record) if self._is_note(record) else None
            if isinstance(value, dict) and value.get('key') == self._key and INSTRUCTIONS in value:
                return str(value[INSTRUCTIONS])
        text = await evaluate()
        await self.journal.write('noted', self.scope.path, value={INSTRUCTIONS: text, 'key': self._key})
        return text

    def _is_note(self, record: Record) -> bool:
        return record.kind == 'noted' and record.path == self.scope.path

    async def resumed(self, note: Resumed) -> None:
        """Record that the run is resumed."""
        await self.journal.write('noted', self.scope.path, value={RESUMED: RESUMED_CODEC.write(note)})

    async def stored(self, checkpoint: Checkpoint) -> None:
        """Record that the files of the workspace were stored."""
        await self.journal.write('noted', self.scope.path, value={FILES: CHECKPOINT_CODEC.write(checkpoint)})

    async def recorded(self, result: Result[object]) -> RecordedResult:
        """The result as it is recorded."""
        return await record_result(result, self._turns, self._calls)

    async def ended(self, result: Result[object], output: OutputType) -> None:
        """Record the result of the run."""
        self.journal.ended = result.ended
        if not self.top or self.continues_after(result.ended):
            return
        done: tuple[str, Json] | None = None
        if result.ended == 'answer':
            encode = partial(ResultCodec(output).write, await self.recorded(result))
            done = self.scope.path, encode() if output.kind is None else await on_thread(encode)  # runs its validators
        elif self.journal.info.session:
            said = record_messages(result.messages, self._turns)
            await self.journal.write('noted', self.scope.path, value={MESSAGES: said})
        waiting = result.ended in {'question', 'approval'}
        status: Status = 'done' if result.ended == 'answer' else 'waiting' if waiting else 'stopped'
        value: dict[str, Json] = {'ended': result.ended}
        if result.question is not None:
            value['question'] = result.question
        await self.journal.end(status, value=value, result=done)

    async def finish(self) -> None:
        """Mark a run with a result as done, if its process died before it could."""
        if self.journal.info.status != 'done':
            self.journal.ended = 'answer'
            await self.journal.end('done', value={'ended': 'answer'})

    async def failed(self, error: BaseException) -> None:
        """Record that the run failed, unless the store fails too: it may be the cause."""
        with contextlib.suppress(JournalError):
            if isinstance(error, EmptyReply):
                await self._refuse_reply()
            if self.top:
                stopped = isinstance(error, RunStopped) or not isinstance(error, Exception)
                self.journal.ended, text = type(error).__name__, '' if stopped else error_text(error)
                await self.journal.end('stopped' if stopped else 'failed', failed=failed_paths(error), error=text)

    async def close(self) -> None:
        """Release the run, so that others can resume it."""
        if self.top:
            await self.journal.close()

    def waiting(self) -> tuple[Waiting, ...]:
        """Open questions to people."""
        return tuple(self._waiting(path, request) for path, request in self.journal.waiting.items())

    def _waiting(self, path: str, request: Json) -> Waiting:
        arguments = _field(request, 'arguments')
        return Waiting(
            path=path,
            question=str(_field(request, 'question')),
            tool=str(_field(request, 'tool') or ''),
            arguments=fields_in(codec.unpack(arguments)) if isinstance(arguments, dict) else {},
            diff=str(_field(request, 'diff') or ''),
            code=code_around(self.journal.index, path),
        )


class ToolResult(Codec[object]):
    """Encodes the result of a tool with its log lines."""

    @staticmethod
    def value_of(written: Json) -> object:
        """The result alone, of what `write` returned."""
        return codec.unpack(_field(written, 'p'))

    def write(self, value: object) -> Json:
        written: dict[str, Json] = {'p': pack_or_repr(value)}
        return {**written, 'log': list(lines)} if (lines := lines_now()) else written

    def read(self, written: Json) -> object:
        logged = _field(written, 'log')
        lines_now().extend(str(line) for line in (logged if isinstance(logged, list) else ()))
        return super().read(written)

    def as_replayed(self, value: object, written: Json) -> object:
        return super().read(written)  # the log lines of a live call are there already


TOOL_RESULT = ToolResult()


def find_call(scope: Scope, tool: str, arguments: Mapping[str, object]) -> Record | None:
    """The record of a successful tool call in a cell of this scope, or by its model."""
    name = f'{tool}({fingerprint(tool, arguments)})'
    for path, entry in scope.journal.index.inside(scope.path):
        parent = parent_of(path)
        is_here = parent == scope.path or (parent_of(parent) == scope.path and name_of(parent) == CELL)
        if is_here and name_of(path) == name and entry.end is not None and entry.end.kind == 'done':
            return entry.end
    return None


def _as_json(person: Callable[[], Awaitable[Approval]]) -> Callable[[], Awaitable[Json]]:
    """Asks the person, and returns the answer as JSON."""

    async def ask() -> Json:
        return (await person()).to_json()

    return ask


def _field(request: Json, name: str) -> Json:
    return request.get(name) if isinstance(request, dict) else None
