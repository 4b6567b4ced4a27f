"""The body of the loop: one model reply, and what it leads to."""

import time
from collections.abc import Mapping
from dataclasses import replace

from habilis.agent.context.output import WrongOutput
from habilis.agent.context.prompt import answer_refused, artifacts_message
from habilis.agent.contract import Step
from habilis.agent.durable.cells import CellOutcome
from habilis.agent.events import AnswerRefused, CompactedEvent, ObservationEvent
from habilis.agent.loop.code_turn import CodeToRun
from habilis.agent.loop.components import Components
from habilis.agent.parsing.repetition import is_repeating
from habilis.agent.parsing.replies import Parsed, parse_reply, parse_words
from habilis.agent.parsing.syntax import compiles
from habilis.agent.policies import SeenReply, Verdict
from habilis.core.errors import EmptyReply
from habilis.models.contract import Message, Options, Reply
from habilis.sandbox import ToolCall

MAX_EMPTY_REPLIES = 3
MAX_REPAIRS = 4
"""Answers of the wrong type that the model may correct."""

CALL_FINAL_ANSWER = 'Call final_answer(...) with that value in Python code.'


class Turns:
    """Takes the steps of one run."""

    def __init__(self, components: Components) -> None:
        self.reply: Reply | None = None
        """The reply of the step under way."""

        self.question: str | None = None
        """What a tool needs a person to answer."""

        self.repairs = 0
        self.empty_replies = 0
        self._components = components

    async def take(self, number: int, can_stop: bool, artifacts: Mapping[str, str], tools: str) -> Step:
        """Ask the model once and do what it says. `tools` describes those that are new, or there for this step only."""
        components, started = self._components, time.perf_counter()
        self.reply, empty_replies, self.empty_replies = None, self.empty_replies, 0
        extra = await self._shown(artifacts, tools)
        options = Options(
            functions=components.tools.functions,
            temperature=components.temperature,
            fallback_temperature=components.policy.temperature(components.history),
        )
        has_python = components.code is not None
        reply = self.reply = await components.model.ask(
            options,
            system=None if can_stop else components.offered.system_without_stop,
            extra=extra,
            code=has_python,
        )
        parsed = parse_reply(reply.text) if has_python else parse_words(reply.text)
        is_cut = reply.finish == 'length' or parsed.truncated
        if is_cut and not reply.calls and is_repeating(reply.text or reply.thinking):
            step = await self._reject(reply, number, SeenReply(form='repeating', text=reply.text))
        elif reply.calls or parsed.calls:
            step = await self._make_calls(reply, parsed, number, can_stop)
        elif parsed.code is not None and is_cut and not compiles(parsed.code):
            step = await self._reject(reply, number, SeenReply(form='truncated', text=reply.text))
        elif parsed.code is not None and components.code is not None:
            is_partial = parsed.is_partial or reply.finish == 'early'
            note = components.policy.text('reply_partial') if is_partial else ''
            outcome = await components.code.run(
                CodeToRun(code=parsed.code, number=number, can_stop=can_stop, note=note)
            )
            step = await self._take_outcome(reply, parsed.code, outcome, number)
        elif parsed.prose:
            step = await self._take_words(reply, parsed.prose, number, can_stop)
        else:
            self.empty_replies = empty_replies + 1
            step = await self._reject_empty(reply, number)
        worked = time.perf_counter() - started - self._components.meter.waited
        return replace(step, seconds=max(worked, _recorded_seconds(step)))

    async def _shown(self, artifacts: Mapping[str, str], tools: str) -> str:
        """What the model is shown in this step only. Code finds the documents, too."""
        components = self._components
        if not artifacts:
            return tools
        if components.code is not None:
            await components.code.set_artifacts(artifacts)
        documents = artifacts_message(artifacts, components.tools.bounds, code=components.code is not None)
        return f'{tools}\n\n{documents}' if tools else documents

    # Code -------------------------------------------------------------------------------------------------------------

    async def _take_outcome(self, reply: Reply, code: str, outcome: CellOutcome, number: int) -> Step:
        observation = await self._observed(outcome)
        if observation is None:
            self._components.conversation.add(reply.message)
        else:
            self._answer_reply(reply, observation, note=outcome.verdict.note)
            self._forget(outcome.verdict)
        return Step(
            number=number,
            reply=reply,
            code=code,
            cell=outcome.cell,
            calls=outcome.cell.calls,
            observation=observation,
        )

    async def _observed(self, outcome: CellOutcome) -> str | None:
        """What the model sees of a cell; None if the cell gave the answer."""
        self.question = self.question or outcome.question
        if not self._components.answer.is_given:
            return outcome.observation
        refusal = await self._validate()
        return f'{outcome.observation}\n{refusal}' if refusal else None

    async def _validate(self) -> str:
        """Let the output validators check the answer. Returns what the model is told if they refuse it."""
        answer = self._components.answer
        try:
            validated = await self._components.validators.check(answer.value)
        except BaseException:
            answer.withdraw()
            raise
        if not validated.refused:
            answer.change(validated.output)
            return ''
        self._components.events.report(AnswerRefused, answer=answer.value, reason=validated.refused)
        answer.withdraw()
        self.repairs += 1
        return answer_refused(validated.refused)

    async def _make_calls(self, reply: Reply, parsed: Parsed, number: int, can_stop: bool) -> Step:
        """The function calls of a reply: cells one after the other, tool calls between them at the same time."""
        components = self._components
        components.conversation.add(reply.message)
        code: list[str] = []
        outcome: CellOutcome | None = None
        made: list[ToolCall] = []
        texts: list[str] = []
        for source, calls in components.tools.group(reply.calls or parsed.calls):
            if components.answer.is_given:
                answers = ['Not done: the answer was given before.'] * len(calls)
            elif source is not None and components.code is not None:
                code.append(source)
                outcome = await components.code.run(CodeToRun(code=source, number=number, can_stop=can_stop))
                observation = await self._observed(outcome)
                answers = ['The answer was taken.' if observation is None else observation]
                made += outcome.cell.calls
            else:
                answers = await components.tools.call(calls)
                called = components.toolbox.take_records()
                components.history.model_calls += called
                made += called
            texts += answers
            for call, text in zip(calls, answers, strict=True):
                role, of = ('tool', call.id) if reply.calls else ('user', None)
                message = Message(role=role, text=text, call_id=of, call_name=call.name)
                components.conversation.add(message, note=outcome.verdict.note if outcome else '')
        if not components.answer.is_given:
            components.events.report(ObservationEvent, observation='\n'.join(texts))
            if outcome is not None and (len(texts) == 1 or outcome.verdict.forget == 'steps'):
                self._forget(outcome.verdict)
        return Step(
            number=number,
            reply=reply,
            code='\n\n'.join(code) or None,
            cell=outcome.cell if outcome else None,
            calls=tuple(made),
            observation=None if components.answer.is_given else '\n'.join(texts),
        )

    # Words ------------------------------------------------------------------------------------------------------------

    async def _take_words(self, reply: Reply, text: str, number: int, can_stop: bool) -> Step:
        """A reply without code is the answer, if this step may end the run and the type is right."""
        answer = self._components.answer
        if not can_stop:
            return await self._reject(reply, number, SeenReply(form='words', text=text))
        try:
            await answer.take_text(text)
        except WrongOutput as wrong:
            self.repairs += 1
            told = str(wrong) if self._components.code is None else f'{wrong} {CALL_FINAL_ANSWER}'
            self._answer_reply(reply, told)
            return Step(number=number, reply=reply, observation=told)
        verdict = await self._judge(SeenReply(form='words', text=text, is_answer=True))
        if verdict.refuse:
            answer.withdraw()
            self._answer_reply(reply, verdict.note)
            return Step(number=number, reply=reply, observation=verdict.note)
        if refusal := await self._validate():
            self._answer_reply(reply, refusal)
            return Step(number=number, reply=reply, observation=refusal)
        self._components.conversation.add(reply.message)
        return Step(number=number, reply=reply)

    async def _reject_empty(self, reply: Reply, number: int) -> Step:
        if self.empty_replies >= MAX_EMPTY_REPLIES:
            model = reply.model or 'the model'
            msg = f'{model} gave an empty reply {self.empty_replies} times in a row; try another model'
            raise EmptyReply(msg)
        return await self._reject(reply, number, SeenReply(form='empty', text=reply.text))

    async def _reject(self, reply: Reply, number: int, seen: SeenReply) -> Step:
        """Answer a reply that cannot be used with the sentence of the policy."""
        verdict = await self._judge(seen)
        self._answer_reply(reply, verdict.note, forget=verdict.forget == 'reply')
        if verdict.forget == 'steps':
            self._forget(verdict)
        return Step(number=number, reply=reply, observation=verdict.note)

    async def _judge(self, seen: SeenReply) -> Verdict:
        """The verdict of the policy, recorded: a replay gets the same from any policy."""
        history, recorder = self._components.history, self._components.recorder
        policy = self._components.policy
        verdict = (
            policy.after_reply(seen, history)
            if recorder is None
            else await recorder.verdict(lambda: policy.after_reply(seen, history))
        )
        verdict = history.allowed(verdict)
        history.turns.append((seen, verdict))
        return verdict

    def _answer_reply(self, reply: Reply, text: str, *, forget: bool = False, note: str = '') -> None:
        """Add the reply, unless it is to be forgotten, and the text that answers it, with a `note` at its end."""
        conversation = self._components.conversation
        if reply.text.strip() and not forget:
            conversation.add(reply.message)
        if text:
            conversation.add(Message(role='user', text=text), note=note)
        self._components.events.report(ObservationEvent, observation=text)

    def _forget(self, verdict: Verdict) -> None:
        if verdict.forget == 'steps':
            self._components.conversation.forget_steps(verdict.note)
            self._components.events.report(CompactedEvent, message='the steps so far were removed for a fresh start')
        elif verdict.forget == 'reply':
            self._components.conversation.forget_reply(verdict.note)


def _recorded_seconds(step: Step) -> float:
    """Seconds of model and code by their own records: more than now if they come from the journal."""
    return step.reply.usage.seconds + (step.cell.seconds if step.cell else 0.0)
