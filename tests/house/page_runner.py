"""Run the steps of one page. A process of its own: `python page_runner.py steps.json`, in an empty folder.

The steps share one namespace, one event loop and one folder. The first that fails ends the process with code 1.
This file imports the standard library only, so that a page sees what a user's program would see.
"""

import ast
import asyncio
import contextlib
import doctest
import inspect
import io
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from types import CodeType, ModuleType
from typing import NotRequired, TypedDict

SECONDS = 300


class Step(TypedDict):
    """An example (with `code`), a command (with `command`), or a file (with `file` and `text`)."""

    line: int
    code: NotRequired[str]
    output: NotRequired[str | None]
    command: NotRequired[str]
    exit_code: NotRequired[int]
    file: NotRequired[str]
    text: NotRequired[str]
    needs_model: bool


class Job(TypedDict):
    """A page and its steps."""

    page: str
    with_model: bool
    """Whether the steps that need a model run too."""

    steps: list[Step]
    commands: NotRequired[str]
    """A folder of commands that are found first."""


def main(job: Job) -> None:
    """Run the steps in order; exit at the first that fails."""
    page = ModuleType('__main__')
    sys.modules['__main__'] = page
    sys.path.insert(0, '')
    with asyncio.Runner() as loop:
        for step in job['steps']:
            problem = None
            if 'file' in step:
                Path(step['file']).write_text(step.get('text', ''), encoding='utf-8')
            elif step['needs_model'] and not job['with_model']:
                problem = check_syntax(job['page'], step['line'], step.get('code', ''))
            elif 'code' in step:
                problem = run_example(job['page'], step['line'], step['code'], step.get('output'), page, loop)
            else:
                problem = run_command(step.get('command', ''), step.get('exit_code', 0), job.get('commands', ''))
            if problem:
                sys.exit(f'{job["page"]}:{step["line"]}: {problem}')


def run_example(
    page: str, line: int, code: str, output: str | None, module: ModuleType, loop: asyncio.Runner
) -> str | None:
    """Run one block of Python; return what is wrong with it, or None."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            execute(page, line, code, module, loop)
    except (Exception, SystemExit, KeyboardInterrupt):
        return f'the example failed.\n{traceback.format_exc()}'
    if output is not None and not same_output(output, printed.getvalue()):
        return f'the page says that this prints:\n{output}\nbut it printed:\n{printed.getvalue()}'
    return None


def execute(page: str, line: int, code: str, module: ModuleType, loop: asyncio.Runner) -> None:
    """Run the code as a notebook would: `await` is allowed outside of functions."""
    result: object = eval(compiled(page, line, code), module.__dict__)
    if inspect.iscoroutine(result):
        loop.run(result)


def check_syntax(page: str, line: int, code: str) -> str | None:
    """Compile a block that is not run; return what is wrong with it, or None."""
    try:
        compiled(page, line, code)
    except SyntaxError:
        return f'the example does not compile.\n{traceback.format_exc()}'
    return None


def compiled(page: str, line: int, code: str) -> CodeType:
    """The code of a block, so that a traceback names the line of the page."""
    return compile('\n' * line + code, page, 'exec', flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def same_output(expected: str, printed: str) -> bool:
    """Whether a page tells the truth; `...` stands for anything, and space at the end of a line counts for nothing."""
    want, got = ('\n'.join(line.rstrip() for line in text.rstrip().splitlines()) + '\n' for text in (expected, printed))
    return doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS)


def run_command(command: str, exit_code: int, commands: str = '') -> str | None:
    """Run one line of the shell; return what is wrong with it, or None."""
    folders = [commands, str(Path(sys.executable).parent), os.environ.get('PATH', os.defpath)]
    environment = os.environ | {'PATH': os.pathsep.join(filter(None, folders))}
    environment.pop('PYTHONWARNINGS', None)  # ours are errors; those of other programs are not our business
    child = subprocess.run(
        command,
        shell=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment,
        timeout=SECONDS,
        check=False,
    )
    if child.returncode == exit_code:
        return None
    return f'`{command}` ended with code {child.returncode}, not {exit_code}.\n{child.stdout}{child.stderr}'


if __name__ == '__main__':
    main(json.loads(Path(sys.argv[1]).read_text(encoding='utf-8')))
