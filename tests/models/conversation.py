"""The conversations that the recorded exchanges are about."""

from collections.abc import Mapping

from habilis.models.config import ModelConfig
from habilis.models.contract import Function, FunctionCall, Message, Options
from tests.models.protocol_server import ProtocolServer

KEY = 'test-key-0123456789'

RUN_PYTHON = Function(
    name='run_python',
    description='Run Python code.',
    parameters={
        'type': 'object',
        'properties': {'code': {'type': 'string', 'description': 'The code to run.'}},
        'required': ['code'],
    },
)

START = (Message(role='system', text='You write Python.'), Message(role='user', text='What is 6 × 7?'))
ONE_STEP = (
    *START,
    Message(
        role='assistant',
        text='I compute it.',
        calls=(FunctionCall(id='call_1', name='run_python', arguments='{"code": "print(6 * 7)"}'),),
        thinking='Better to be sure.',
    ),
    Message(role='tool', text='42', call_id='call_1', call_name='run_python'),
)

CONVERSATIONS: Mapping[str, tuple[tuple[Message, ...], Options]] = {
    'plain': (START, Options()),
    'call': (START, Options(functions=(RUN_PYTHON,))),
    'stream': (ONE_STEP, Options(functions=(RUN_PYTHON,))),
}
"""By kind of exchange: what is sent, and how."""


def config_for(server: ProtocolServer, provider: str, model: str) -> ModelConfig:
    """Ask that server in the protocol of that provider. Bedrock signs with a pair of keys from the environment."""
    return ModelConfig(
        model=f'{provider}:{model}',
        base_url=server.base_url(provider),
        api_key=None if provider == 'bedrock' else KEY,
        temperature=0.2,
        max_tokens=500,
        timeout=20,
    )
