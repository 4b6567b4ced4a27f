"""Resume the run of a flow, and print what it returns."""

import contextlib
import json
from collections.abc import Callable

from habilis.agent.hooks.sanitize import escape_controls, one_line
from habilis.cli.interrupt import INTERRUPTED, run_interruptible
from habilis.cli.run import report
from habilis.cli.runs.app_loader import AnyFlow
from habilis.cli.settings import read_settings
from habilis.cli.streams import say
from habilis.core.errors import HabilisError
from habilis.core.integers import error_text
from habilis.core.settings import load_settings
from habilis.flows.contract import FlowPaused
from habilis.flows.step_progress import steps_said
from habilis.journal import OnChange


def resume_flow(
    flow: AnyFlow,
    run: str,
    *,
    journal: str | None,
    user: str | None,
    on_change: OnChange,
    command: Callable[[str, str], str],
    app: str,
    as_json: bool = False,
    quiet: bool = False,
) -> int:
    """Resume a flow, print its steps unless `quiet`, and print its result. Returns the exit code.

    `command` makes a `habilis runs` command line for it from a subcommand and options; `app` names the flow in one.
    """
    settings = read_settings(lambda: load_settings(None, journal=journal, user=user))

    async def work() -> object:
        async with contextlib.nullcontext() if quiet else steps_said(settings.journal, run, say, resumed=True):
            return await flow.resume(run, journal=settings.journal, user=settings.user, on_change=on_change)

    try:
        value = run_interruptible(work)
    except KeyboardInterrupt:
        say(f'interrupted; resume with: {command("resume", app)}')
        return INTERRUPTED
    except FlowPaused as paused:
        _print_questions(paused, command)
        if as_json:
            print(json.dumps({'output': None, 'ended': 'approval', 'run_id': run}), flush=True)
        return report.QUESTION
    except HabilisError:
        raise
    except Exception as error:  # raised by the flow itself
        notes = ''.join(f' ({note})' for note in getattr(error, '__notes__', ()))
        say(f'{run} failed: {one_line(f"{error_text(error)}{notes}", 1000)}')
        return report.FAILED
    _print_answer(run, value, as_json=as_json)
    return report.ANSWERED


def _print_answer(run: str, value: object, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({'output': report.value_to_json(value), 'ended': 'answer', 'run_id': run}), flush=True)
    else:
        report.print_answer(value)


def _print_questions(paused: FlowPaused, command: Callable[[str, str], str]) -> None:
    for question in paused.questions:
        say(f'{one_line(question.path, 200)} needs an answer: {escape_controls(question.text)}')
    say(f'see how to answer: {command("show", "")}')
