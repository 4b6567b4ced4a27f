"""A recorded run as JSON, for other programs."""

from collections.abc import Sequence
from dataclasses import asdict

from habilis.agent.durable.audit import call_as_json
from habilis.agent.durable.trajectory import RecordedStep, Trajectory, read_trajectories
from habilis.agent.hooks.questions import is_question
from habilis.core.codec import Json
from habilis.core.integers import safe_repr
from habilis.flows.contract import StepStatus
from habilis.flows.status import read_steps
from habilis.journal.questions import open_questions
from habilis.journal.runs import RunView, TolerantStore


async def run_as_json(reading: RunView) -> dict[str, Json]:
    """What was recorded of a run: its agents with their steps, the steps of a flow, and the questions it waits for."""
    readable = TolerantStore(reading.store)
    agents = await read_trajectories(reading)
    steps: Sequence[StepStatus] = await read_steps(readable, reading.info) if reading.info.kind == 'flow' else ()
    questions = await open_questions(readable, reading.run)
    info: dict[str, Json] = asdict(reading.info)
    return {
        **info,
        'status': reading.state,
        'agents': [_agent_as_json(trajectory) for trajectory in agents],
        'steps': [asdict(step) for step in steps],
        'question': reading.ended.get('question') if reading.state == 'waiting' else None,
        'questions': [{'path': path, 'request': request} for path, request in questions],
        'score': reading.score,
        'damage': [str(error) for error in reading.damage],
    }


def _agent_as_json(trajectory: Trajectory) -> Json:
    output = '' if trajectory.result is None else trajectory.result.output
    return {
        'path': trajectory.path,
        'task': trajectory.inputs.task,
        'model': trajectory.inputs.model,
        'steps': [turn_as_json(turn) for turn in trajectory.turns],
        'usage': asdict(trajectory.usage),
        'answer': None if trajectory.result is None else output if isinstance(output, str) else safe_repr(output),
    }


def turn_as_json(turn: RecordedStep) -> dict[str, Json]:
    """One step of an agent."""
    cell = turn.cells[-1].cell if turn.cells else None
    error = cell.error if cell else None
    return {
        'step': turn.number,
        'path': turn.path,
        'at': turn.at,
        'messages': list(turn.user_messages),
        'reply': turn.reply.text if turn.reply is not None else None,
        'code': turn.code,
        'stdout': ''.join(each.cell.stdout for each in turn.cells),
        'value': cell.text if cell else None,
        'observation': turn.observation,
        'error': turn.error or (None if error is None or is_question(error.message) else str(error)),
        'calls': [call_as_json(call) for call in turn.calls],
        'seconds': turn.seconds,
    }
