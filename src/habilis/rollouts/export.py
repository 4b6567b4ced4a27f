"""Rollouts as rows of the datasets that trainers read. `to_json_lines` of the agent room writes them.

The forms are those of TRL: messages of the chat completions API, but with the arguments of tool calls as objects.
"""

import json
from collections.abc import Iterable, Sequence
from typing import cast

from habilis.agent.durable.training_rows import chat_message
from habilis.core.codec import Json
from habilis.core.dataclass_codec import pack_or_repr
from habilis.core.narrowing import is_dict
from habilis.models.contract import Function, Message, Reply
from habilis.rollouts.contract import Rollout, RolloutGroup


def message_rows(groups: Iterable[RolloutGroup], *, solved: float = 1.0) -> list[dict[str, Json]]:
    """For supervised training: the conversations whose reward is `solved` or more, each once."""
    return [
        {'messages': _messages((*one.prompt, *one.completion)), 'tools': _tools(one.functions)}
        for group in groups
        for one in group.distinct
        if one.reward >= solved
    ]


def group_rows(groups: Iterable[RolloutGroup]) -> list[dict[str, Json]]:
    """For reinforcement learning: prompt, completion and reward of each rollout; `group` says which belong together."""
    return [_group_row(one) for group in groups for one in group.rollouts]


def _group_row(one: Rollout) -> dict[str, Json]:
    return {
        'group': one.task.id or f'task-{one.number}',
        'sample': one.sample,
        'seed': one.seed,
        'run': one.run_id,
        'prompt': _messages(one.prompt),
        'completion': _messages(one.completion),
        'tools': _tools(one.functions),
        'reward': one.reward,
        'step_rewards': list(one.step_rewards),
        'ended': one.ended,
        'output': json.dumps(pack_or_repr(one.output)),  # a column has one type
        'logprobs': [_logprobs(reply) for reply in one.replies],
        'token_ids': [[token.id for token in reply.tokens if token.id is not None] for reply in one.replies],
    }


def _logprobs(reply: Reply) -> list[Json]:
    return [token.logprob for token in reply.tokens]


def _messages(messages: Sequence[Message]) -> list[Json]:
    return [_message(message) for message in messages]


def _message(message: Message) -> dict[str, Json]:
    fields = chat_message(message)
    if message.calls:
        fields['tool_calls'] = [
            {'type': 'function', 'function': {'name': call.name, 'arguments': _arguments(call.arguments)}}
            for call in message.calls
        ]
    fields.pop('tool_call_id', None)
    return fields


def _arguments(text: str) -> Json:
    """Arguments as an object. What the model wrote may be no JSON; a trainer should see it all the same."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return cast('Json', found) if is_dict(found) else {'text': text}


def _tools(functions: Sequence[Function]) -> list[Json]:
    return [
        {
            'type': 'function',
            'function': {'name': one.name, 'description': one.description, 'parameters': dict(one.parameters)},
        }
        for one in functions
    ]
