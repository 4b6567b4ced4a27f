"""How a run ends: by its answer, whatever fails after it, and by its time limit, with what was done until then."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence

import pytest

from habilis.agent import Agent, RunLimits
from habilis.core.errors import ContextOverflow, ModelUnavailable
from habilis.journal import MemoryStore
from habilis.models import FunctionCall, Message, Reply, ScriptedModel
from habilis.models.contract import Delta, Options
from habilis.tools import tool

ANSWER = '```python\nprint("y" * 900_000)\nfinal_answer(42)\n```'
SLEEP = '```python\nimport time\ntime.sleep(9)\n```'


class SlowAtTheEnd(ScriptedModel):
    """Takes long for its second reply."""

    async def stream(
        self,
        messages: Sequence[Message],
        options: Options = Options(),  # noqa: B008 - frozen
    ) -> AsyncGenerator[Delta | Reply]:
        if self.requests:
            await asyncio.sleep(60)
        async for item in super().stream(messages, options):
            yield item


# The summary ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('error', [ModelUnavailable('the server is gone'), ContextOverflow('too long')])
async def test_an_answer_is_not_lost_because_its_summary_cannot_be_had(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def reply(messages: Sequence[Message]) -> str:
        if len(messages) == 2:
            return ANSWER
        raise error

    async with Agent(ScriptedModel(reply), summary='default') as agent:
        with caplog.at_level(logging.WARNING, 'habilis'):
            result = await agent.run('go')
    assert (result.ended, result.output, result.summary) == ('answer', 42, None)
    assert f'no summary: {error}' in caplog.text


async def test_the_last_output_is_shortened_for_the_summary() -> None:
    model = ScriptedModel([ANSWER, 'All is well.'])
    async with Agent(model, summary='default') as agent:
        assert (await agent.run('go')).summary == 'All is well.'
    assert sum(len(message.text) for message in model.requests[1].messages) < 30_000
    assert 'characters truncated' in model.requests[1].messages[-1].text


async def test_a_summary_counts_as_a_request() -> None:
    model = ScriptedModel([ANSWER, 'All is well.'])
    async with Agent(model, summary='default', limits=RunLimits(requests=1)) as agent:
        result = await agent.run('go')
    assert (result.output, result.summary, len(model.requests)) == (42, None, 1)


async def test_an_answer_in_the_last_step_that_there_may_be_has_its_summary() -> None:
    async with Agent(ScriptedModel([ANSWER, 'All is well.']), summary='default') as agent:
        assert (await agent.run('go', max_steps=1)).summary == 'All is well.'


async def test_a_summary_that_takes_too_long_is_given_up() -> None:
    async with Agent(SlowAtTheEnd([ANSWER, '']), summary='default', limits=RunLimits(seconds=1)) as agent:
        result = await agent.run('go')
    assert (result.ended, result.output, result.summary) == ('answer', 42, None)
    assert result.seconds >= 1


# The time limit -------------------------------------------------------------------------------------------------------


async def test_the_time_of_a_step_that_was_cut_off_counts() -> None:
    async with Agent(ScriptedModel([SLEEP]), limits=RunLimits(seconds=0.5)) as agent:
        result = await agent.run('go')
    assert result.ended == 'max_seconds'
    assert result.seconds >= 0.5


async def test_the_time_limit_holds_in_a_step_that_begins_in_the_record() -> None:
    async with Agent(ScriptedModel([SLEEP]), limits=RunLimits(seconds=0.5), journal=MemoryStore()) as agent:
        result = await agent.run('go')
        for _ in range(2):
            async with asyncio.timeout(60):
                result = await agent.resume(result.run_id)
            assert result.ended == 'max_seconds'


async def test_a_step_that_begins_in_the_record_has_the_time_that_it_is_resumed_with() -> None:
    nap = '```python\nimport time\ntime.sleep(1)\nfinal_answer("rested")\n```'
    async with Agent(ScriptedModel([nap]), limits=RunLimits(seconds=0.3), journal=MemoryStore()) as agent:
        result = await agent.run('go')
        assert result.ended == 'max_seconds'
        result = await agent.resume(result.run_id, limits=RunLimits(seconds=60))
    assert result.output == 'rested'


@pytest.mark.one_protocol
@pytest.mark.parametrize('by_call', [False, True])
async def test_without_a_journal_the_observation_lists_what_was_done_before_the_timeout(by_call: bool) -> None:
    paid: list[int] = []

    @tool(idempotent=False)
    def pay(amount: int) -> str:
        paid.append(amount)
        return 'paid'

    code = 'pay(7)\nimport time\ntime.sleep(9)'
    call = FunctionCall(id='1', name='python', arguments=f'{{"code": {code!r}}}'.replace("'", '"'))
    first = Reply(calls=(call,)) if by_call else Reply(text=f'```python\n{code}\n```')
    model = ScriptedModel([first, '```python\nfinal_answer("done")\n```'])
    async with Agent(model, tools=[pay], limits=RunLimits(seconds=1), journal='off') as agent:
        result = await agent.run('go')
        assert (result.ended, paid) == ('max_seconds', [7])
        assert [[call.tool for call in step.calls] for step in result.steps] == [['pay']]
        assert (await agent.resume(result.run_id)).output == 'done'
    said, seen = model.requests[1].messages[-2:]
    assert (said.role, said.calls) == ('assistant', first.calls)
    assert (seen.role, seen.call_id) == (('tool', '1') if by_call else ('user', None))
    assert "- pay(amount=7): 'paid'" in seen.text


# Calls after the answer -----------------------------------------------------------------------------------------------


async def test_what_a_reply_calls_after_its_answer_is_not_done() -> None:
    sent: list[str] = []

    @tool(side='both')
    def mail(to: str) -> None:
        """Send a mail."""
        sent.append(to)

    calls = (
        FunctionCall(id='1', name='python', arguments='{"code": "mail(\'before\')\\nfinal_answer(5)"}'),
        FunctionCall(id='2', name='python', arguments='{"code": "mail(\'after\')"}'),
        FunctionCall(id='3', name='mail', arguments='{"to": "after"}'),
    )
    async with Agent(ScriptedModel([Reply(calls=calls, finish='calls')], functions=True), tools=[mail]) as agent:
        result = await agent.run('go')
    assert (result.output, sent) == (5, ['before'])
    assert result.steps[0].observation is None
    assert [(message.call_id, message.text) for message in result.messages if message.role == 'tool'] == [
        ('1', 'The answer was taken.'),
        ('2', 'Not done: the answer was given before.'),
        ('3', 'Not done: the answer was given before.'),
    ]
