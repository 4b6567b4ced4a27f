"""Marks for the prompt cache: at most four, only where the provider takes them, and history stays as it is."""

from dataclasses import replace
from typing import Any

import pytest

from habilis.models.contract import Message, Options
from habilis.models.engine import EngineModel
from tests.models.conversation import ONE_STEP, RUN_PYTHON, config_for
from tests.models.protocol_server import BASES, ProtocolServer, exchange

LONG = tuple(
    replace(message, cache=True)
    for message in (
        *ONE_STEP,
        *(Message(role=role, text=f'{role} {number}') for number in range(5) for role in ('assistant', 'user')),
    )
)
MARKS = {'anthropic': 'cache_control', 'openrouter': 'cache_control', 'bedrock': 'cachePoint'}


async def sent(server: ProtocolServer, provider: str, messages: tuple[Message, ...]) -> Any:
    model = EngineModel(config_for(server, provider, exchange(provider, 'plain').model))
    await model.request(messages, Options(functions=(RUN_PYTHON,)))
    await model.close()
    return server.last.json


def count(body: object, name: str) -> int:
    if isinstance(body, dict):
        return sum((key == name) + count(value, name) for key, value in body.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return sum(count(item, name) for item in body) if isinstance(body, list) else 0  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


@pytest.mark.parametrize('provider', sorted(MARKS))
async def test_at_most_four_marks_are_sent(provider: str, server: ProtocolServer) -> None:
    assert count(await sent(server, provider, LONG), MARKS[provider]) == 4


@pytest.mark.parametrize('provider', sorted(MARKS))
async def test_the_instructions_and_the_newest_turns_are_marked(provider: str, server: ProtocolServer) -> None:
    body = await sent(server, provider, LONG)
    instructions = body.get('system') or body['messages'][0]
    assert count(instructions, MARKS[provider]) == 1
    assert count(body['messages'][-1], MARKS[provider]) == 1


@pytest.mark.parametrize('provider', ['anthropic', 'bedrock'])
async def test_the_answer_of_a_function_can_be_marked(provider: str, server: ProtocolServer) -> None:
    messages = (*ONE_STEP[:-1], replace(ONE_STEP[-1], cache=True))
    body = await sent(server, provider, messages)
    assert count(body['messages'][-1], MARKS[provider]) == 1
    assert count(body, MARKS[provider]) == 1


async def test_a_mark_on_what_the_model_said_goes_to_the_turn_before(server: ProtocolServer) -> None:
    messages = (*ONE_STEP[:2], replace(ONE_STEP[2], cache=True), ONE_STEP[3])
    body = await sent(server, 'anthropic', messages)
    assert [count(turn, 'cache_control') for turn in body['messages']] == [1, 0, 0]


@pytest.mark.parametrize('provider', sorted(set(BASES) - set(MARKS)))
async def test_a_provider_without_marks_gets_the_same_request_as_without_them(
    provider: str, server: ProtocolServer
) -> None:
    plain = await sent(server, provider, tuple(replace(message, cache=False) for message in LONG))
    assert await sent(server, provider, LONG) == plain


async def test_history_is_not_changed(server: ProtocolServer) -> None:
    before = tuple(replace(message) for message in LONG)
    await sent(server, 'anthropic', LONG)
    assert before == LONG
