"""The steps of a run as rows for training and evaluation."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import cast

from habilis.agent.context.prompt import PYTHON, as_sent
from habilis.agent.durable.audit import call_as_json
from habilis.agent.durable.trajectory import RecordedStep, Trajectory, read_trajectories
from habilis.core.codec import Json
from habilis.core.secrets import redact
from habilis.journal.runs import RunView
from habilis.models.contract import Message, Reply


async def training_rows(view: RunView) -> list[dict[str, Json]]:
    """One row for each step: the messages before it, the reply, its code, the observation and the reward.

    `imports` are statements that the sandbox ran before the first step; the code may need them elsewhere.

    Only the last row of an agent has a reward: the score of the run, if it has one; otherwise 1 for an answer and 0
    for none. Secrets are redacted. The same records always give the same rows.
    """
    rows: list[dict[str, Json]] = []
    for trajectory in await read_trajectories(view):
        messages = _first_messages(trajectory)
        for turn in trajectory.turns:
            messages += [chat_message(Message(role='user', text=text)) for text in turn.user_messages]
            rows.append(_row(view, trajectory, turn, messages))
            messages += _messages_of(turn)
        if trajectory.turns:
            rows[-1]['reward'] = _reward(view, trajectory)
    return [cast('dict[str, Json]', _redacted(row)) for row in rows]


def to_json_lines(rows: Sequence[Mapping[str, Json]]) -> str:
    """Rows as JSON lines."""
    return ''.join(f'{json.dumps(row)}\n' for row in rows)


def _row(view: RunView, trajectory: Trajectory, turn: RecordedStep, messages: Sequence[Json]) -> dict[str, Json]:
    reply = turn.reply
    return {
        'run': view.run,
        'agent': trajectory.path,
        'step': turn.number,
        'model': (reply.model if reply is not None else '') or trajectory.inputs.model,
        'messages': list(messages),
        'reply': reply.text if reply is not None else None,
        'imports': list(trajectory.imports),
        'code': turn.code,
        'observation': turn.observation,
        'calls': [call_as_json(call) for call in turn.calls],
        'error': turn.error or None,
        'usage': asdict(reply.usage) if reply is not None else None,
        'seconds': turn.seconds,
        'reward': None,
    }


def _reward(view: RunView, trajectory: Trajectory) -> float:
    if view.score is not None:
        return view.score
    return 1.0 if trajectory.result is not None and trajectory.result.ended == 'answer' else 0.0


# Messages -------------------------------------------------------------------------------------------------------------


def _first_messages(trajectory: Trajectory) -> list[Json]:
    """The conversation before the first step."""
    inputs = trajectory.inputs
    system: list[Json] = [{'role': 'system', 'content': inputs.system}] if inputs.system else []
    history = [chat_message(as_sent(message)) for message in inputs.history if message.role != 'system']
    return [*system, *history, {'role': 'user', 'content': inputs.asked or inputs.task}]


def _messages_of(turn: RecordedStep) -> list[Json]:
    """The messages that a step adds to the conversation."""
    reply = turn.reply
    if reply is None:
        return []
    if reply.calls:
        return [chat_message(reply.message), *_call_answers(turn, reply)]
    observation: list[Json] = [{'role': 'user', 'content': turn.observation}] if turn.observation else []
    return [chat_message(reply.message), *observation]


def _call_answers(turn: RecordedStep, reply: Reply) -> list[Json]:
    """The answers to the function calls of a reply."""
    cells, calls = list(turn.cells), [call for call in turn.calls if call.side == 'model']
    answers: list[Json] = []
    for call in reply.calls:
        text = turn.observation or ''
        if len(reply.calls) > 1 and call.name == PYTHON.name and cells:
            text = cells.pop(0).observation
        elif len(reply.calls) > 1 and calls:
            answered = calls.pop(0)
            text = answered.error or answered.result
        answers.append({'role': 'tool', 'tool_call_id': call.id, 'name': call.name, 'content': text})
    return answers


def chat_message(message: Message) -> dict[str, Json]:
    """A message in the form of the chat completions API."""
    fields: dict[str, Json] = {'role': message.role, 'content': message.text}
    if message.calls:
        fields['tool_calls'] = [
            {'id': call.id, 'type': 'function', 'function': {'name': call.name, 'arguments': call.arguments}}
            for call in message.calls
        ]
    if message.call_id is not None:
        fields |= {'tool_call_id': message.call_id, 'name': message.call_name}
    return fields


def _redacted(value: Json) -> Json:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_redacted(item) for item in value]
    if isinstance(value, dict):
        return {redact(key): _redacted(item) for key, item in value.items()}
    return value
