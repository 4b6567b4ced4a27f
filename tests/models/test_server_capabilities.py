"""What a model can do is asked of its server, and never guessed from the address (row B5)."""

import json
from typing import Any

import pytest

from habilis.agent import Agent
from habilis.models import ModelConfig
from habilis.models.contract import Traits
from habilis.models.engine import EngineModel
from tests.cases import each_case
from tests.models.protocol_server import Answer, ProtocolServer, answer_json

CODE = 'total = 40 + 2\nfinal_answer(total)'
CALL = {
    'content': None,
    'tool_calls': [
        {'id': 'c1', 'type': 'function', 'function': {'name': 'python', 'arguments': json.dumps({'code': CODE})}}
    ],
}
FENCE = {'content': f'Now I add.\n```python\n{CODE}\n```\nThat was all.'}


def chunks(message: dict[str, Any]) -> bytes:
    """A streamed completion with the usage at its end, as OpenAI-compatible servers send it."""
    calls = message.get('tool_calls')
    delta = {**message, 'role': 'assistant'}
    if calls:
        delta['tool_calls'] = [{**call, 'index': 0} for call in calls]
    events: list[dict[str, Any]] = [
        {'choices': [{'index': 0, 'delta': delta, 'finish_reason': None}]},
        {'choices': [{'index': 0, 'delta': {}, 'finish_reason': 'tool_calls' if calls else 'stop'}]},
        {'choices': [], 'usage': {'prompt_tokens': 701, 'completion_tokens': 43, 'total_tokens': 744}},
    ]
    common = {'id': 'x', 'object': 'chat.completion.chunk', 'created': 1, 'model': 'm'}
    lines = [f'data: {json.dumps({**common, **event})}\n\n' for event in events]
    return ''.join([*lines, 'data: [DONE]\n\n']).encode()


def answer(message: dict[str, Any]) -> Answer:
    return Answer(headers={'content-type': 'text/event-stream'}, chunks=(chunks(message),))


def config(server: ProtocolServer, model: str = 'm', **settings: Any) -> ModelConfig:
    return ModelConfig(model=model, base_url=server.base_url('openai'), retries=0).with_changes(**settings)


@each_case(
    ('model', 'facts', 'expected'),
    [
        ('m', {}, Traits(context_tokens=32_768)),
        ('m', {'/v1/models': {'data': [{'id': 'm', 'max_model_len': 9000}]}}, Traits(context_tokens=9000)),
        (
            'm',
            {'/v1/models': {'data': [{'id': 'm', 'supported_parameters': ['temperature'], 'context_length': 7}]}},
            Traits(functions=False, context_tokens=7),
        ),
        (
            'm',
            {
                '/v1/models': {'data': [{'id': 'm', 'owned_by': 'llamacpp'}]},
                '/props': {
                    'default_generation_settings': {'n_ctx': 5000},
                    'chat_template_caps': {'supports_tool_calls': False},
                    'modalities': {'vision': True},
                },
            },
            Traits(functions=False, context_tokens=5000, images=True),
        ),
        (
            'ollama:m',
            {
                '/api/show': {
                    'capabilities': ['completion', 'tools', 'vision'],
                    'parameters': 'stop "x"\nnum_ctx   6000',
                }
            },
            Traits(context_tokens=6000, images=True),
        ),
        ('ollama:m', {'/api/show': {'capabilities': ['completion']}}, Traits(functions=False, context_tokens=4096)),
        ('llamacpp:m', {'/props': ['not', {'of': 'this'}, 'form']}, Traits(context_tokens=8192)),
    ],
)
def test_a_server_says_what_its_model_can_do(model: str, facts: dict[str, object], expected: Traits) -> None:
    with ProtocolServer() as server:
        server.facts |= facts
        assert EngineModel(config(server, model)).traits == expected
        given = config(server, model, functions=not expected.functions, context_tokens=123, images=not expected.images)
        assert EngineModel(given).traits == Traits(
            functions=not expected.functions, context_tokens=123, images=not expected.images
        )
        assert EngineModel(config(server, model, small=True)).traits.functions is False


async def test_a_server_on_loopback_gets_functions_and_its_reply_and_usage_are_whole(server: ProtocolServer) -> None:
    for message, functions in ((CALL, None), (FENCE, False)):
        server.will_answer(answer(message))
        async with Agent(config(server, functions=functions), journal='off') as agent:
            result = await agent.run('What is 40 and 2?')
        assert result.output == 42
        assert ('tools' in server.last.json) is (functions is None)
        assert (result.usage.input_tokens, result.usage.output_tokens) == (701, 43), 'as reported, not estimated'
        assert result.steps[0].reply.text == (message['content'] or '')


@pytest.mark.parametrize(
    ('status', 'said'),
    [
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (400, 'library/gemma does not support tools'),
        (500, 'tools param requires --jinja flag'),
        (404, 'No endpoints found that support tool use'),
    ],
)
async def test_a_server_that_refuses_functions_is_asked_for_fenced_blocks(
    status: int, said: str, server: ProtocolServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.will_answer(answer_json({'error': {'message': said}}, status=status), answer(FENCE), answer(FENCE))
    async with Agent(config(server), journal='off') as agent:
        assert [(await agent.run('What is 40 and 2?')).output for _ in range(2)] == [42, 42]
    first, *others = (request.json for request in server.requests)
    assert 'tools' in first
    assert ['tools' in other for other in others] == [False, False], 'it is not asked again'
    assert '```python' in others[0]['messages'][0]['content']
    assert '```python' not in first['messages'][0]['content']
    assert 'refuses function calls' in caplog.text
    assert 'functions=False' in caplog.text


async def test_other_refusals_are_errors(server: ProtocolServer) -> None:
    server.will_answer(answer_json({'error': {'message': 'tools[0].function.parameters is invalid'}}, status=400))
    async with Agent(config(server), journal='off') as agent:
        with pytest.raises(Exception, match=r'refused the request \(400\)'):
            await agent.run('go')
    assert len(server.requests) == 1
