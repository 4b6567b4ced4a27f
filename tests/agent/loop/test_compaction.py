"""A run that outgrows its context goes on with what matters: a small context with a digest, a large with a summary."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from habilis import Agent, RunLimits, ScriptedModel
from habilis.agent import Bounds
from habilis.agent.events import AgentEvent, CompactedEvent
from habilis.core.errors import ModelUnavailable
from habilis.models.contract import Message, Reply
from habilis.models.tokens import count_message_tokens
from tests.agent.scripts import as_call, block

FACTS = ('the berth of the Nordlicht is 47', 'the invoice is ZX-9913', 'the rent is 1,285 euros')
TASK = 'Read the pages and give back the facts. Amounts are in euros.'
SUMMARY = """Goal: answer with the facts.
Decisions: one page per step.
Facts: {facts} (printed by code).
Open: nothing.
Variables: page, the last page."""
LARGE, PAGES = 100_000, 10


class Reader:
    """Prints a page in each step, with a fact in the middle, and answers with the facts that it can still see."""

    def __init__(self, *, words: int, done: int = 0, summary: str = SUMMARY) -> None:
        self.words, self.done, self.summary = words, done, summary
        self.summaries = 0

    def __call__(self, messages: Sequence[Message]) -> Reply:
        seen = '\n'.join(message.text for message in messages)
        known = [fact for fact in FACTS if fact in seen]
        if 'Use exactly these five headings' in messages[-1].text:
            self.summaries += 1
            if not self.summary:
                raise ModelUnavailable('overloaded')
            return Reply(text=self.summary.format(facts='; '.join(known)))
        self.done += 1
        if self.done > PAGES:
            return Reply(text=block(f'final_answer({known!r})'))
        fact = FACTS[self.done - 1] if self.done <= len(FACTS) else ''
        page = f"page = 'The market sold pears. ' * {self.words}"
        code = f'{page}\nprint(page + {fact!r} + page)\nrows = [1] * {self.done + 30}'
        return Reply(text=f'I read page {self.done}.\n{block(code)}')


class Watched:
    """A run of a reader, and what happened in it."""

    def __init__(self, reader: Reader, context: int, **options: Any) -> None:
        self.model = ScriptedModel(reader, context_tokens=context)
        self.compacted: list[str] = []
        given: dict[str, Any] = {'journal': 'off', 'observations': Bounds(tokens=20_000), **options}
        self.agent = Agent[Any](self.model, hooks=[self.watch], **given)

    def watch(self, event: AgentEvent) -> None:
        self.compacted += [event.text] if isinstance(event, CompactedEvent) else []

    def fits(self, context: int) -> bool:
        return all(count_message_tokens(request.messages) < context for request in self.model.requests)


async def test_a_small_context_gets_a_plain_digest_with_the_ends_of_outputs_and_the_live_variables() -> None:
    run = Watched(Reader(words=50), 6000)
    async with run.agent as agent:
        result = await agent.run(TASK)
    digest = next(message.text for message in result.messages if 'Earlier steps, shortened' in message.text)
    assert '- variables that are there: page (str, 1,150 characters), rows (list, ' in digest
    assert 'I read page 1.' in digest
    assert 'page = ' in digest
    assert result.messages[0].text.startswith(TASK)
    assert run.fits(6000 - 1024)
    assert len(run.model.requests) == PAGES + 1, 'nothing else was asked'


@pytest.mark.parametrize('functions', [False, True])
async def test_what_is_shortened_twice_keeps_both_ends_of_outputs_and_not_the_advice_below(functions: bool) -> None:
    cells = [f"print('FROM{number}', *range(400), 'TO{number}')" for number in range(12)]
    replies = [Reply(text=block(cell)) for cell in cells]
    if functions:
        replies = [as_call(reply, number) for number, reply in enumerate(replies)]
    model = ScriptedModel([*replies, 'Done.'], context_tokens=6000, functions=functions)
    compacted: list[object] = []

    def watch(event: AgentEvent) -> None:
        compacted.extend([event] if isinstance(event, CompactedEvent) else [])

    async with Agent(model, policy='small', journal='off', hooks=[watch]) as agent:
        await agent.run('Count.', max_steps=20)
    digest = next(message.text for message in model.requests[-1].messages if 'shortened' in message.text)
    assert len(compacted) > 1
    assert digest.count('FROM') >= 5
    seen = [entry for entry in digest.split('\n- ') if entry.startswith('saw: ')]
    assert seen
    assert all('FROM' in entry and ' 399 TO' in entry for entry in seen), digest


async def test_a_large_context_is_summarized_once_each_time_and_the_facts_stay() -> None:
    reader = Reader(words=1200)
    run = Watched(reader, LARGE)
    async with run.agent as agent:
        result = await agent.run(TASK)
    assert result.output == [*FACTS]
    assert reader.summaries == len(run.compacted) >= 1
    assert {*run.compacted} == {'earlier steps were summarized to make room'}
    assert result.usage.requests == PAGES + 1 + reader.summaries, 'it counts'
    assert run.fits(LARGE)
    texts = [message.text for message in result.messages]
    assert texts[0].startswith(TASK)
    assert sum('- summary: Goal: answer with the facts.' in text for text in texts) == 1


async def test_few_steps_that_fill_a_large_context_are_summarized_too() -> None:
    reader = Reader(words=3500, done=PAGES - 3)
    run = Watched(reader, LARGE, observations=Bounds(tokens=50_000))
    async with run.agent as agent:
        await agent.run(TASK)
    assert reader.summaries == len(run.compacted) >= 1


async def test_a_digest_names_the_variable_with_the_whole_output_of_the_last_step() -> None:
    replies = [block(f"print('{number} ' * 6000)") for number in range(3)]
    model = ScriptedModel([*replies, block('final_answer(1)')], context_tokens=6000)
    async with Agent[Any](model, observations=Bounds(tokens=2500), journal='off') as agent:
        result = await agent.run(TASK)
    last = '\n'.join(message.text for message in model.requests[-1].messages)
    assert ', output_3 (str, 12,001 characters)' in last
    assert 'New variables' not in '\n'.join(step.observation or '' for step in result.steps)


async def test_without_a_summary_the_plain_digest_is_used() -> None:
    for summary in ('', block('print(1)')):
        reader = Reader(words=1200, summary=summary)
        run = Watched(reader, LARGE)
        async with run.agent as agent:
            result = await agent.run(TASK)
        assert result.ended == 'answer'
        assert reader.summaries >= 1
        assert {*run.compacted} == {'earlier steps were shortened to make room'}


async def test_no_summary_takes_the_last_request_of_the_limits() -> None:
    reader = Reader(words=1200)
    run = Watched(reader, LARGE, limits=RunLimits(requests=8))
    async with run.agent as agent:
        result = await agent.run(TASK)
    assert result.ended == 'max_requests'
    assert len(run.model.requests) == 8
    assert (reader.summaries, len(run.compacted)) == (0, 1)


async def test_a_resumed_run_has_its_summary_and_asks_nothing_again(tmp_path: Path) -> None:
    first = Reader(words=1200)
    run = Watched(first, LARGE, journal=tmp_path / 'runs.db')
    async with run.agent as agent:
        stopped = await agent.run(TASK, max_steps=PAGES)
    assert first.summaries == 1
    second = Reader(words=1200, done=PAGES)
    again = Watched(second, LARGE, journal=tmp_path / 'runs.db')
    async with again.agent as agent:
        result = await agent.resume(stopped.run_id)
    assert result.output == [*FACTS]
    assert (second.summaries, len(again.model.requests)) == (0, 1)
    assert result.usage.requests == stopped.usage.requests + 1 == PAGES + 2
    assert result.messages[: len(stopped.messages)] == stopped.messages
