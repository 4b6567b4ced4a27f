"""A reply that repeats itself is stopped while it is written, and a run with a local model has a time limit."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from habilis.agent import Agent, RunLimits
from habilis.agent.contract import LOCAL_SECONDS
from habilis.agent.loop.limits import Meter
from habilis.agent.options import limits_from
from habilis.core.settings import Settings, load_settings
from habilis.models import Message, Reply
from habilis.models.contract import NO_OPTIONS, Delta, FunctionCall, Options, Traits, Usage

SENTENCE = 'First I will think about the task and then I will write the code that solves it. '
MOST = 20_000
ANSWER = '```python\nfinal_answer(42)\n```'


class Rambling:
    """A model that writes the same again and again in its first reply, and answers in its second."""

    name = 'test:rambling'

    def __init__(self, repeated: Delta, *, traits: Traits) -> None:
        self.repeated = repeated
        self.traits = traits
        self.requests: list[Sequence[Message]] = []
        self.written = 0
        self.is_closed = False

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        raise NotImplementedError

    async def stream(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> AsyncIterator[Delta | Reply]:
        self.requests.append(messages)
        if len(self.requests) > 1:
            call = FunctionCall(id='1', name='python', arguments='{"code": "final_answer(42)"}')
            yield Reply(calls=(call,), finish='calls') if options.functions else Reply(text=ANSWER)
            return
        try:
            while self.written < MOST:
                self.written += 1
                yield self.repeated
                await asyncio.sleep(0)
            yield Reply(text='the end', usage=Usage(requests=1))
        finally:
            self.is_closed = True

    async def close(self) -> None:
        pass


@pytest.mark.one_protocol
@pytest.mark.parametrize(
    'repeated',
    [
        Delta(text=SENTENCE),
        Delta(text=f'{SENTENCE}\n'),
        Delta(text=f'def solve(x):\n    # {SENTENCE}\n    return x\n\n\n'),
        Delta(thinking=SENTENCE),
        Delta(arguments=f'{SENTENCE}\\n'),
    ],
    ids=['words', 'lines', 'blocks', 'thinking', 'arguments'],
)
@pytest.mark.parametrize(
    'traits', [Traits(functions=True), Traits(functions=False), Traits(functions=False, local=True, small=True)]
)
async def test_a_reply_that_repeats_itself_is_stopped_and_asked_for_again(repeated: Delta, traits: Traits) -> None:
    model = Rambling(repeated, traits=traits)
    async with Agent(model) as agent:
        result = await agent.run('go')
    assert result.output == 42
    assert model.written < MOST / 50
    assert model.is_closed
    assert SENTENCE not in '\n'.join(message.text for message in model.requests[1])
    assert 'repeat' in model.requests[1][-1].text


TWO = 'First I look.\n```python\nx = 1\nprint(x)\n```\nThen the remainder:\n```python\nfinal_answer(x + 1)\n```\nDone.'


class Chunked(Rambling):
    """Writes a text in its first reply, in chunks that end anywhere, and answers in its second."""

    async def stream(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> AsyncIterator[Delta | Reply]:
        self.requests.append(messages)
        text = self.repeated.text if len(self.requests) == 1 else ANSWER
        for start in range(0, len(text), 20):
            yield Delta(text=text[start : start + 20])
        yield Reply(text=text)


@pytest.mark.one_protocol
async def test_a_reply_that_is_stopped_after_its_first_block_ends_there_and_the_model_is_told() -> None:
    model = Chunked(Delta(text=TWO), traits=Traits(functions=False, local=True))
    async with Agent(model) as agent:
        result = await agent.run('go')
    assert result.output == 42
    said, seen = model.requests[1][-2:]
    assert said.text == TWO[: TWO.index('Then')]
    assert seen.text.startswith('Output:\n1\n')
    assert seen.text.endswith('Only the first part of your reply was run: send one block at a time.')


@pytest.mark.one_protocol
async def test_all_blocks_of_a_hosted_model_are_run_and_kept_as_they_were_written() -> None:
    model = Chunked(Delta(text=TWO), traits=Traits(functions=False))
    async with Agent(model) as agent:
        result = await agent.run('go')
    assert result.output == 2
    assert result.messages[-1].text == TWO


@pytest.mark.one_protocol
async def test_the_model_is_told_that_code_after_output_it_has_invented_was_not_run() -> None:
    invented = '```python\nx = 1\nprint(x)\n```\nOutput: 7\n```python\nfinal_answer(7)\n```'
    model = Chunked(Delta(text=invented), traits=Traits(functions=False))
    async with Agent(model) as agent:
        result = await agent.run('go')
    assert result.output == 42
    assert (result.steps[0].observation or '').endswith('send one block at a time.')


def seconds_left(limits: RunLimits, *, local: bool) -> float | None:
    return Meter(limits, local=local).seconds_left()


@pytest.mark.one_protocol
def test_a_run_with_a_local_model_has_a_time_limit_unless_it_is_switched_off() -> None:
    assert seconds_left(RunLimits(steps=5), local=True) == LOCAL_SECONDS
    assert seconds_left(RunLimits(), local=False) is None
    assert seconds_left(RunLimits(seconds=None), local=True) is None
    assert seconds_left(RunLimits(seconds=7), local=True) == 7
    meter = Meter(RunLimits(seconds=7), local=True)
    meter.add(LOCAL_SECONDS)
    meter.extend(RunLimits(), 1, Usage())
    assert meter.seconds_left() == LOCAL_SECONDS


@pytest.mark.one_protocol
def test_the_settings_name_the_time_limit_or_switch_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits_from(Settings()).seconds == 'default'
    for written, expected in (('60', 60.0), ('off', None)):
        monkeypatch.setenv('HABILIS_MAX_SECONDS', written)
        assert limits_from(load_settings()).seconds == expected


@pytest.mark.one_protocol
async def test_the_default_time_limit_ends_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('habilis.agent.loop.limits.LOCAL_SECONDS', 0.3)

    class Silent(Rambling):
        async def stream(
            self, messages: Sequence[Message], options: Options = NO_OPTIONS
        ) -> AsyncIterator[Delta | Reply]:
            yield Delta(text='Well')
            await asyncio.sleep(60)

    async with Agent(Silent(Delta(), traits=Traits(functions=False, local=True))) as agent:
        assert (await agent.run('go')).ended == 'max_seconds'
