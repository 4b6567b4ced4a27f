"""One run: the loop of prompt, model, code, sandbox, observation, step by step."""

import asyncio
import contextlib
import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from habilis.agent.loop.code_turn import Acted, Actor, check_variables
from habilis.agent.contract import Ended, Result, RunLimits, Step
from habilis.agent.doubts import Doubt, Doubts
from habilis.agent.loop.finish import cut_off, end_run
from habilis.agent.lifting import LONG, ROWS, TABLE, lift_table, rows_of, typed_off
from habilis.agent.options import AnyTool
from habilis.agent.context.output import WrongOutput
from habilis.agent.parsing.replies import Parsed, parse_reply, parse_words
from habilis.agent.parsing.repetition import goes_in_circles
from habilis.agent.parsing.syntax import compiles
from habilis.agent.loop.components import Closing, Parts, above
from habilis.agent.context.prompt import artifacts_message, prompt_file, start_over_note
from habilis.core.errors import AgentError, EmptyReply, JournalError
from habilis.core.events import Event
from habilis.journal import Paused
from habilis.models.contract import Message, Options, Reply
from habilis.sandbox import ToolCall

MAX_EMPTY = 3
MAX_REPAIRS = 4
MAX_TYPED = 2
STUCK = 2
"""After so many failed pieces of code in a row a small model is asked to be less predictable: it repeats itself."""

RESTLESS = 0.6
"""The temperature for that."""


class Run(Closing):
    """A run under way. `step` until it gives a result; `steps` are those done so far."""

    def __init__(self, parts: Parts) -> None:
        self.id = parts.run_id
        self._parts = parts
        self.steps: list[Step] = []
        self.result: Result[object] | None = None
        self.toolbox = parts.toolbox
        self._empty = 0
        self._repairs = 0
        self._question: str | None = None
        self.busy = False
        self.interrupted = False
        """Whether its last step stopped in the middle: what was done of it is in the record, and found there."""

        self._printed: Acted | None = None
        """The last code that ran well and showed something, without saying that it is the answer."""

        self._failed = 0
        """How often, since code last ran well."""

        self._reply: Reply | None = None
        """Of the step under way."""

        small = parts.actor is not None and not parts.caller.functions
        self._small = small
        texts = [value for value in parts.variables.values() if isinstance(value, str)]
        self._doubts = Doubts(parts.task, small=small, texts=texts)
        table = lift_table(parts.task) if small else ''
        self._table = table if table.count('\n') >= LONG else ''
        """In the task; it need not be written again."""

        self._typed = 0
        """How often it was about to be."""

        self._doubted: Doubt | None = None
        """What the last answer was doubted for."""

    @property
    def recorded(self) -> bool:
        """Whether it can be found again in a journal."""
        return self._parts.recorder is not None

    async def step(
        self,
        *,
        can_stop: bool = True,
        artifacts: Mapping[str, str] | None = None,
        tools: Sequence[AnyTool] = (),
    ) -> Result[object] | None:
        """Ask the model once and do what it says. The result if that ended the run, else None.

        Args:
            can_stop: whether `final_answer` is there in this step, and a reply without code is an answer.
            artifacts: documents for this step: shown to the model by name, and in code in the dict `artifacts`.
            tools: more tools for this step, beside those of the agent.
        """
        if self.result is not None and self.result.ended == 'answer':
            msg = 'this run has its answer; start another'
            raise AgentError(msg)
        if self.busy:
            msg = 'this run is doing a step already'
            raise AgentError(msg)
        if self.interrupted:
            msg = f'the last step of this run was not finished: go on with agent.resume({self.id!r})'
            raise AgentError(msg)
        self.busy = True
        recorder = self._parts.recorder
        token = above.set((self._parts.ledger, *self._parts.outer))
        try:
            with (
                contextlib.nullcontext() if recorder is None else recorder.scope.entered(),
                self.toolbox.lent(tools) as more,
            ):
                check_variables(self._parts.variables, more.names())
                return await self._recorded_step(can_stop, artifacts or {}, self._parts.caller.told(more))
        finally:
            above.reset(token)
            self.busy = False

    async def _recorded_step(self, can_stop: bool, artifacts: Mapping[str, str], told: str) -> Result[object] | None:
        recorder = self._parts.recorder
        try:
            if recorder is not None:
                can_stop = await recorder.may_stop(len(self.steps) + 1, can_stop)
            return await self._bounded_step(can_stop, artifacts, told)
        except Paused:
            self.interrupted = True
            if recorder is None or not recorder.top:
                raise
            return await self._end('approval')
        except (Exception, asyncio.CancelledError) as error:
            self.interrupted = recorder is not None
            await self._tell_failure(error)
            raise

    async def _tell_failure(self, error: BaseException) -> None:
        """Those who watch see why no more comes. A cancelled run is not kept waiting by them: it is closed soon."""
        watchers, recorder = self._parts.watchers, self._parts.recorder
        watchers.muted = False
        if recorder is not None:
            with contextlib.suppress(JournalError):  # the store may be the reason of the failure
                await recorder.failed(error)
        watchers.emit(Event(kind='run_failed', text=f'{type(error).__name__}: {error}'.removesuffix(': '), data=error))
        if not isinstance(error, asyncio.CancelledError):
            await watchers.drain()

    async def _bounded_step(self, can_stop: bool, artifacts: Mapping[str, str], told: str) -> Result[object] | None:
        meter, watchers, recorder = self._parts.meter, self._parts.watchers, self._parts.recorder
        watchers.step = len(self.steps) + 1
        watchers.muted = replayed = recorder is not None and recorder.replaying
        if not replayed and (reached := meter.used_up(len(self.steps), self._parts.ledger.total)):
            return await self._end(reached)
        watchers.emit(Event(kind='step_started'))
        self._reply = None
        started = time.perf_counter()
        try:
            async with asyncio.timeout(None) as bound:
                watchers.on_live = functools.partial(self._bind, bound)
                if not replayed:
                    watchers.go_live()
                await self._take_step(can_stop, artifacts, told)
        except TimeoutError:
            if not meter.time_is_up():
                raise
            meter.add(took := time.perf_counter() - started)
            if recorder is not None:
                self.interrupted, recorder.goes_on = True, False
            elif self._reply is not None:
                self.steps.append(replace(cut_off(self._parts, self._reply, watchers.step), seconds=took))
            return await self._end('max_seconds')
        except BaseException:
            meter.add(time.perf_counter() - started)
            raise
        finally:
            watchers.on_live = None
        meter.add(self.steps[-1].seconds if replayed else time.perf_counter() - started)
        watchers.emit(Event(kind='step_finished', data=self.steps[-1] if self.steps else None))
        if self._parts.stop.given:
            return await self._end('answer', self._parts.stop.value)
        question, self._question = self._question or self.toolbox.take_question(), None
        if question is not None and not (recorder is not None and recorder.behind):
            return await self._end('question', question=question)
        if self._repairs > MAX_REPAIRS:
            return await self._end('invalid_output')
        return None

    def _bind(self, bound: asyncio.Timeout) -> None:
        """The step is live from now on, whether it began so or in the record: its time runs."""
        meter = self._parts.meter
        meter.go_live(len(self.steps), self._parts.ledger.total)
        left = meter.seconds_left()
        bound.reschedule(None if left is None else asyncio.get_running_loop().time() + left)

    # One step ---------------------------------------------------------------------------------------------------------

    async def _take_step(self, can_stop: bool, artifacts: Mapping[str, str], told: str) -> None:
        parts, started = self._parts, time.perf_counter()
        extra = [told] if told else []
        if artifacts:
            extra.append(artifacts_message(artifacts, parts.caller.bounds, code=parts.actor is not None))
            if parts.actor:
                await parts.actor.set_artifacts(artifacts)
        options = Options(functions=parts.caller.functions, temperature=RESTLESS if self._stuck else None)
        system = None if can_stop else parts.system_without_stop
        has_python = parts.actor is not None
        reply = self._reply = await parts.asker.ask(
            options,
            system=system,
            extra='\n\n'.join(extra),
            code=has_python,
            table=self._table if self._typed < MAX_TYPED else '',
        )
        parsed = parse_reply(reply.text) if has_python else parse_words(reply.text)
        number = len(self.steps) + 1
        if reply.calls or parsed.calls or parsed.code is not None:
            self._empty = 0
        if reply.calls or parsed.calls:
            step = await self._call(reply, parsed, number, can_stop)
        elif parsed.code is not None and parts.actor is not None:
            step = await self._code(parts.actor, reply, parsed, number, can_stop)
        else:
            step = self._words(reply, parsed, number, can_stop)
        self.steps.append(replace(step, seconds=max(time.perf_counter() - started, _worked(step))))

    @property
    def _stuck(self) -> bool:
        """Whether a small model, asked once more as before, would say the same once more."""
        astray = self._doubted is not None and not self._doubted.detail
        return not self._parts.caller.functions and (self._failed >= STUCK or self._empty > 0 or astray)

    async def _code(self, actor: Actor, reply: Reply, parsed: Parsed, number: int, can_stop: bool) -> Step:
        code = parsed.code or ''
        if parsed.truncated or reply.finish == 'length':
            if goes_in_circles(reply.text):
                self._failed += 1
                return self._say(reply, number, prompt_file('nudge_circles'), forget=True)
            if self._table and self._typed < MAX_TYPED and typed_off(reply.text, self._table):
                nudge = prompt_file('nudge_typed_off').replace('{name}', ROWS if rows_of(self._table) else TABLE)
                self._typed += 1
                return self._say(reply, number, nudge, forget=True)
            if not compiles(code):
                return self._say(reply, number, prompt_file('nudge_truncated'))
        acted = await actor.act(code, number=number, can_stop=can_stop)
        observation = self._after_code(acted, can_stop)
        if self._parts.stop.given:
            self._parts.conversation.add(reply.message)
        else:
            self._hear(reply, observation)
            self._start_over_if_stuck(acted)
        return Step(
            number=number,
            reply=reply,
            code=code,
            cell=acted.cell,
            calls=acted.calls,
            observation=None if self._parts.stop.given else observation,
        )

    def _after_code(self, acted: Acted, can_stop: bool) -> str:
        """What goes back; a result shown twice by the same code is the answer."""
        before, self._printed = self._printed, None
        self._question = self._question or acted.question
        self._doubted = self._doubt(acted)
        if self._doubted is not None:
            return f'{acted.observation}\n{self._doubted.text}'
        if acted.cell.error is not None:
            self._failed += 1
            return acted.observation
        failed, self._failed = self._failed, 0
        shown = acted.cell.stdout.strip() or acted.cell.text
        if shown and not self._parts.stop.given:
            self._printed = acted
            if can_stop and before is not None and before.code == acted.code and before.shown == acted.shown:
                if not self._parts.stop.take_shown(acted.cell):
                    self._failed = failed + STUCK  # it goes in circles, without an error
                return prompt_file('nudge_repeated')
        return acted.observation

    def _start_over_if_stuck(self, acted: Acted) -> None:
        """A small model copies the code that it sees. After some failures, or a doubt, it no longer sees it."""
        if self._doubted is not None and self._small:
            if not self._doubted.detail:
                self._start_over(self._doubted.text)
            return
        error = acted.cell.error
        if error is None or self._parts.caller.functions or not self._failed or self._failed % STUCK:
            return
        # Later it starts from nothing: it copies even the line that it is told to leave out.
        self._start_over(start_over_note(acted.code, error) if self._failed % (2 * STUCK) else '')

    def _start_over(self, note: str) -> None:
        self._parts.conversation.start_over(note)
        self._parts.watchers.emit(Event(kind='compacted', text='starting over without the code that failed'))

    def _doubt(self, acted: Acted) -> Doubt | None:
        parts = self._parts
        if not parts.stop.given:
            return None
        said = '\n'.join(message.text for message in parts.conversation.messages)
        last = self.steps[-1].cell if self.steps else None
        before = [call for step in self.steps for call in step.calls]
        doubt = self._doubts.about_answer(
            acted.code,
            parts.stop.value,
            seen=f'{said}\n{acted.cell.stdout}',
            tools=self.toolbox.signatures(),
            calls=[*before, *acted.calls],
            refusal=str(last.error) if last and last.error else '',
        )
        if doubt is not None:
            parts.stop.given = False
        return doubt

    async def _call(self, reply: Reply, parsed: Parsed, number: int, can_stop: bool) -> Step:
        parts = self._parts
        parts.conversation.add(reply.message)
        code: list[str] = []
        acted: Acted | None = None
        made: list[ToolCall] = []
        texts: list[str] = []
        for source, calls in parts.caller.in_turn(reply.calls or parsed.calls):
            if parts.stop.given:
                answers = ['Not done: the answer was given before.'] * len(calls)
            elif source is not None and parts.actor is not None:
                code.append(source)
                acted = await parts.actor.act(source, number=number, can_stop=can_stop)
                observation = self._after_code(acted, can_stop)
                answers = ['The answer was taken.' if parts.stop.given else observation]
                made += acted.calls
            else:
                answers = await parts.caller.call(calls)
                made += parts.toolbox.take_records()
            texts += answers
            for call, text in zip(calls, answers, strict=True):
                role, of = ('tool', call.id) if reply.calls else ('user', None)
                parts.conversation.add(Message(role=role, text=text, call_id=of, call_name=call.name))
        if not parts.stop.given:
            parts.watchers.emit(Event(kind='observation', text='\n'.join(texts)))
        return Step(
            number=number,
            reply=reply,
            code='\n\n'.join(code) or None,
            cell=acted.cell if acted else None,
            calls=tuple(made),
            observation=None if parts.stop.given else '\n'.join(texts),
        )

    def _words(self, reply: Reply, parsed: Parsed, number: int, can_stop: bool) -> Step:
        """A reply without code: the answer, if there may be one now."""
        text = parsed.prose
        if not text:
            self._empty += 1
            if self._empty >= MAX_EMPTY:
                msg = (
                    f'{reply.model or "the model"} gave an empty reply {self._empty} times in a row; try another model'
                )
                raise EmptyReply(msg)
            return self._say(reply, number, prompt_file('nudge_empty'), forget=True)
        self._empty = 0
        if not can_stop:
            return self._say(reply, number, prompt_file('nudge_go_on'))
        if doubt := self._doubts.about_words(text, worked=any(step.code for step in self.steps)):
            return self._say(reply, number, doubt)
        try:
            value = self._parts.output.check_text(text)
        except WrongOutput as wrong:
            if self._printed is not None and self._parts.stop.take_shown(self._printed.cell):
                return Step(number=number, reply=reply)
            self._repairs += 1
            return self._say(reply, number, str(wrong))
        self._parts.conversation.add(reply.message)
        self._parts.stop.given, self._parts.stop.value = True, value
        return Step(number=number, reply=reply)

    def _say(self, reply: Reply, number: int, text: str, *, forget: bool = False) -> Step:
        """Answer the model with a sentence instead of an observation. What it shall `forget` it cannot copy."""
        self._hear(reply, text, forget=forget)
        return Step(number=number, reply=reply, observation=text)

    def _hear(self, reply: Reply, text: str, *, forget: bool = False) -> None:
        conversation = self._parts.conversation
        if reply.text.strip() and not forget:
            conversation.add(reply.message)
        conversation.add(Message(role='user', text=text))
        self._parts.watchers.emit(Event(kind='observation', text=text))

    # The end ----------------------------------------------------------------------------------------------------------

    def tell(self, text: str) -> None:
        """A person says something more: an answer to the question, or another task."""
        self._parts.stop.given = False
        self.result, self._repairs = None, 0
        self._parts.conversation.add(Message(role='user', text=text), by_user=True)

    def goes_on_with(self, limits: RunLimits | None) -> None:
        """After its record, which it is about to go through, it may use as much as these say."""
        self._parts.meter.to_come = limits

    def go_on(self, limits: RunLimits) -> None:
        """Forget that it stopped; from here it may use as much as `limits` say."""
        self.result = None
        self._repairs = self._empty = 0
        self._parts.meter.extend(limits, len(self.steps), self._parts.ledger.total)

    async def _end(self, ended: Ended, output: object = None, question: str | None = None) -> Result[object]:
        self.result = await end_run(self._parts, tuple(self.steps), ended, output=output, question=question)
        return self.result


def _worked(step: Step) -> float:
    """Seconds that model and code took, by their own records: more than now, if they are from the journal."""
    return step.reply.usage.seconds + (step.cell.seconds if step.cell else 0.0)
