"""Connections: the SDK's client is made as we want it."""

from typing import Any, cast

import pytest

from habilis.models.connection import Target, connect
from tests.models.conversation import KEY
from tests.models.protocol_server import BASES, exchange


def target(provider: str, url: str) -> Target:
    return Target(provider=provider, model=exchange(provider, 'plain').model, url=url, key=KEY, seconds=3)


@pytest.mark.parametrize('provider', ['openai', 'openai-responses', 'anthropic', 'groq', 'openrouter', 'ollama'])
@pytest.mark.usefixtures('no_keys')
async def test_the_sdk_does_not_retry_by_itself(provider: str) -> None:
    connection = connect(target(provider, 'http://127.0.0.1:1/v1'))
    assert cast('Any', connection.model).client.max_retries == 0
    await connection.close()


@pytest.mark.usefixtures('no_keys')
async def test_bedrock_takes_a_bearer_token_and_tries_once() -> None:
    connection = connect(target('bedrock', 'https://bedrock.example'))
    client = cast('Any', connection.model).client
    sent: list[str] = []

    def send(request: Any, **_: object) -> None:
        sent.append(request.headers['Authorization'])
        msg = 'not sent'
        raise ConnectionAbortedError(msg)

    client.meta.events.register('before-send.bedrock-runtime.Converse', send)
    with pytest.raises(ConnectionAbortedError):
        client.converse(modelId='x', messages=[{'role': 'user', 'content': [{'text': 'hi'}]}])
    await connection.close()
    assert [value if isinstance(value, str) else bytes(value).decode() for value in sent] == [f'Bearer {KEY}']


@pytest.mark.parametrize('provider', sorted(set(BASES) - {'bedrock'}))
@pytest.mark.usefixtures('no_keys')
async def test_a_connection_may_be_closed_twice(provider: str) -> None:
    connection = connect(target(provider, 'http://127.0.0.1:1/v1'))
    await connection.close()
    await connection.close()
