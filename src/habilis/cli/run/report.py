"""How a run ended: in words, as JSON, and as an exit code."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from habilis.agent.contract import Ended, Result, Step
from habilis.agent.hooks.harmless import neutral, one_line
from habilis.agent.hooks.questions import is_question
from habilis.core.codec import Json, NotPlain, pack
from habilis.core.settings import Settings

ANSWERED, FAILED, WRONG_USAGE, LIMIT_REACHED, QUESTION = range(5)


def command_line(name: str, run: str, options: str = '', value: str = '') -> str:
    """A command of `habilis runs` to show to people, who may paste it into a shell."""
    if run.startswith('-'):
        return f'habilis runs {name}{options} -- {shlex.quote(run)}{value}'
    return f'habilis runs {name} {shlex.quote(run)}{value}{options}'


NAME = 60
"""Letters of the name of a tool."""

EXIT_CODES: Mapping[Ended, int] = {'answer': ANSWERED, 'question': QUESTION, 'approval': QUESTION}
"""All others are limits."""


def exit_code(result: Result[Any]) -> int:
    """What the process should return."""
    return EXIT_CODES.get(result.ended, LIMIT_REACHED)


def answer_text(output: object) -> str:
    """The answer for people and for pipes: text as it is, everything else as Python shows it."""
    return output if isinstance(output, str) else repr(output)


def to_json(result: Result[Any], *, model: str) -> dict[str, Json]:
    """All of the result. What JSON has no word for is written as `{"$": type, "v": …}`."""
    return {
        'output': packed(result.output),
        'ended': result.ended,
        'question': result.question,
        'summary': result.summary,
        'steps': [_step(step) for step in result.steps],
        'usage': asdict(result.usage),
        'cost': result.cost,
        'seconds': result.seconds,
        'run_id': result.run_id,
        'model': model,
        'scripted': result.scripted,
    }


def _step(step: Step) -> dict[str, Json]:
    cell = step.cell
    error = cell.error if cell else None
    return {
        'code': step.code,
        'stdout': cell.stdout if cell else '',
        'error': None if error is None or is_question(error.message) else str(error),
        'seconds': step.seconds,
    }


def packed(value: object) -> Json:
    """A value as JSON has it."""
    try:
        return pack(value)
    except NotPlain:  # a value of the host, for instance of a tool
        return repr(value)


def stopped(result: Result[Any], settings: Settings, output_type: str | None, resume: str | None) -> str:
    """Which limit ended the run, and how to go on: with `resume`, if the run is kept, or else with a higher limit."""
    if result.ended == 'invalid_output':
        return f'stopped: after {len(result.steps)} steps no answer was of the type {output_type}; try another model'
    limit, more = _limits(settings).get(result.ended, (result.ended, ''))
    advice = f'; go on with: {resume}' if resume else f'; {more} gives it more' if more else ''
    return f'stopped at its limit of {limit}, without an answer{advice}'


def _limits(settings: Settings) -> Mapping[Ended, tuple[str, str]]:
    """Each limit in words, and what raises it."""
    steps, seconds, cost = settings.max_steps, settings.max_seconds or 0, settings.max_cost or 0
    return {
        'max_steps': (f'{steps} {"step" if steps == 1 else "steps"}', f'--max-steps {2 * steps}'),
        'max_seconds': (f'{seconds:g} s', f'--max-seconds {2 * seconds:g}'),
        'max_cost': (f'${cost:g}', f'--max-cost {2 * cost:g}'),
        'max_tokens': (f'{settings.max_run_tokens or 0:,} tokens', 'HABILIS_MAX_RUN_TOKENS'),
        'max_tool_calls': (f'{settings.max_tool_calls} tool calls', 'HABILIS_MAX_TOOL_CALLS'),
    }


def asked(result: Result[Any], command: Callable[[str, str], str]) -> Iterator[str]:
    """What people have to decide, and how. `command` makes one of `habilis runs` of its name and more options."""
    several = len(result.waiting) > 1
    for waiting in result.waiting:
        path = f' --path {shlex.quote(waiting.path)}' if several else ''
        yield f'{one_line(waiting.tool or "the run", NAME)} waits for a person: {neutral(waiting.question)}'
        if waiting.tool:
            yield f'go on with: {command("approve", path)}  or: {command("deny", path)}'
        else:
            yield f'see how to answer: {command("show", "")}'


def interrupted(steps: int, workspace: str | None, resume: str | None) -> str:
    """What to know after Ctrl-C."""
    count = f'{steps} step' if steps == 1 else f'{steps} steps'
    if resume is not None:
        return f'stopped after {count}; go on with: {resume}'
    if workspace is not None:
        return f'stopped after {count}. To go on, run the same command again: the files in {workspace} are kept'
    return f'stopped after {count}. The same command begins it anew; with --workspace DIR its files are kept'
