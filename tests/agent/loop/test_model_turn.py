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
