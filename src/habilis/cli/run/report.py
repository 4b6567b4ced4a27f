"""Result of a run: as text, as JSON and as an exit code."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from habilis.agent.context.output import as_text
from habilis.agent.contract import LOCAL_SECONDS, Ended, Result, Step
from habilis.agent.hooks.questions import is_question
from habilis.agent.hooks.sanitize import escape_controls, one_line
from habilis.agent.hooks.terminal import has_markup
from habilis.cli.pictures import said_path, show_pictures
from habilis.cli.value_text import call_lines
from habilis.core.codec import Json, NotPlain, pack
from habilis.core.integers import safe_repr
from habilis.core.settings import Settings
from habilis.sandbox.contract import FileChange

ANSWERED, FAILED, WRONG_USAGE, LIMIT_REACHED, QUESTION = range(5)

EXIT_CODES: Mapping[Ended, int] = {'answer': ANSWERED, 'question': QUESTION, 'approval': QUESTION}
"""All other ends are limits."""

MAX_TOOL_NAME_CHARS = 60
MAX_LISTED_FILES = 10


def runs_command(name: str, run: str, options: str = '', value: str = '') -> str:
    """A `habilis runs` command line to show to the user, quoted for a shell."""
    if run.startswith('-'):
        return f'habilis runs {name}{options} -- {shlex.quote(run)}{value}'
    return f'habilis runs {name} {shlex.quote(run)}{value}{options}'


def exit_code(result: Result[object]) -> int:
    """Exit code for a result."""
    return EXIT_CODES.get(result.ended, LIMIT_REACHED)


def answer_text(output: object) -> str:
    """The answer as text: strings as they are, other values as their repr."""
    return output if isinstance(output, str) else safe_repr(output)


def print_answer(output: object) -> None:
    """Print the answer on stdout: in full for another program, rendered and with short integers on a terminal."""
    if sys.stdout.isatty() and isinstance(output, str) and has_markup(output):
        from rich.console import Console

        from habilis.agent.hooks.console import SafeConsole

        SafeConsole(Console(highlight=False)).markdown(output)
    elif sys.stdout.isatty():
        print(escape_controls(output if isinstance(output, str) else as_text(output, repr)), flush=True)
    else:
        print(answer_text(output), flush=True)


def files_of(result: Result[object], workspace: str | None, pictures: Path) -> list[FileChange]:
    """The files that the run created or changed, by their paths on this machine; with its saved pictures."""
    found: dict[str, FileChange] = {}
    for cell in (step.cell for step in result.steps if step.cell):
        for file in cell.files if workspace is not None else ():
            path = os.path.abspath(os.path.join(workspace or '', file.path))
            found[path] = replace(file, path=path, change=found.get(path, file).change)
        for saved in show_pictures(cell, None, pictures):
            path = os.path.abspath(saved)
            found[path] = FileChange(path=path, size=saved.stat().st_size, change='new')
    return [file for path, file in found.items() if os.path.lexists(path)]


def file_lines(files: Sequence[FileChange]) -> Iterator[str]:
    """One line for each of the first files, for people."""
    for file in files[:MAX_LISTED_FILES]:
        yield f'{file.change} file: {escape_controls(said_path(Path(file.path)))}'
    if len(files) > MAX_LISTED_FILES:
        yield f'and {len(files) - MAX_LISTED_FILES:,} more files'


def result_to_json(result: Result[object], *, model: str, files: Sequence[FileChange] = ()) -> dict[str, Json]:
    """All fields of the result. Values JSON has no type for become `{"$": type, "v": …}`."""
    return {
        'output': value_to_json(result.output),
        'ended': result.ended,
        'question': result.question,
        'summary': result.summary,
        'steps': [_step_to_json(step) for step in result.steps],
        'files': [asdict(file) for file in files],
        'usage': asdict(result.usage),
        'cost': result.cost,
        'seconds': result.seconds,
        'run_id': result.run_id,
        'model': model,
        'scripted': result.scripted,
    }


def _step_to_json(step: Step) -> dict[str, Json]:
    cell = step.cell
    error = cell.error if cell else None
    return {
        'code': step.code,
        'stdout': cell.stdout if cell else '',
        'error': None if error is None or is_question(error.message) else str(error),
        'seconds': step.seconds,
    }


def value_to_json(value: object) -> Json:
    """The value as JSON; its repr if it is not plain data."""
    try:
        return pack(value)
    except NotPlain:  # a host object, for example from a tool
        return safe_repr(value)


def count_steps(number: int) -> str:
    """`1 step`, `2 steps`."""
    return f'{number} {"step" if number == 1 else "steps"}'


def limit_message(
    result: Result[object],
    settings: Settings,
    output_type: str | None = None,
    resume: str | None = None,
    *,
    has_options: bool = True,
) -> str:
    """Which limit ended the run, and how to continue: the `resume` command, else a higher limit.

    `has_options`: whether the command has options for limits; without them it is a setting.
    """
    if result.ended == 'invalid_output':
        return (
            f'stopped after {count_steps(len(result.steps))}: no answer had the type {output_type}; try another model'
        )
    limit, raise_with = _limits(settings).get(result.ended, (result.ended, ''))
    if not has_options and raise_with.startswith('--'):
        name, value = raise_with.removeprefix('--').split()
        raise_with = f'HABILIS_{name.replace("-", "_").upper()}={value}'
    advice = f'; resume with: {resume}' if resume else f'; raise the limit with {raise_with}' if raise_with else ''
    return f'stopped at the limit of {limit} without an answer{advice}'


def _limits(settings: Settings) -> Mapping[Ended, tuple[str, str]]:
    """Each limit as text, and what raises it."""
    steps, seconds, cost = settings.max_steps, settings.max_seconds, settings.max_cost or 0
    seconds = seconds if isinstance(seconds, float) else LOCAL_SECONDS
    return {
        'max_steps': (count_steps(steps), f'--max-steps {2 * steps}'),
        'max_seconds': (f'{seconds:g} s', f'--max-seconds {2 * seconds:g}'),
        'max_cost': (f'${cost:g}', f'--max-cost {2 * cost:g}'),
        'max_tokens': (f'{settings.max_run_tokens or 0:,} tokens', 'HABILIS_MAX_RUN_TOKENS'),
        'max_tool_calls': (f'{settings.max_tool_calls} tool calls', 'HABILIS_MAX_TOOL_CALLS'),
    }


def pending_lines(result: Result[object], command: Callable[[str, str], str], *, with_code: bool) -> Iterator[str]:
    """Pending approvals and questions, each with the command that answers it."""
    several = len(result.waiting) > 1
    for waiting in result.waiting:
        path = f' --path {shlex.quote(waiting.path)}' if several else ''
        if waiting.tool:
            tool, code = one_line(waiting.tool, MAX_TOOL_NAME_CHARS), waiting.code if with_code else ''
            yield f'habilis: {tool} needs approval: {escape_controls(waiting.question)}'
            lines = call_lines(waiting.tool, waiting.arguments, diff=waiting.diff, code=code)
            yield from (f'  {line}' for line in lines)
            yield f'habilis: approve with: {command("approve", path)}'
            yield f'habilis: or deny with: {command("deny", path)}'
        else:
            yield f'habilis: the run needs an answer: {escape_controls(waiting.question)}'
            yield f'habilis: see how to answer: {command("show", "")}'


def interrupt_message(steps: int, workspace: str | None, resume: str | None) -> str:
    """State of the run after Ctrl-C."""
    stopped = f'interrupted after {count_steps(steps)}'
    if resume is not None:
        return f'{stopped}; resume with: {resume}'
    if workspace is not None:
        return f'{stopped}; the run was not recorded, but the files in {workspace} are kept'
    return f'{stopped}; the run was not recorded. Use --workspace DIR to keep its files'
