"""Programs of users: their agents and flows by name, and flows gone on with."""

import contextlib
import importlib
import json
import os
import sys
from typing import Any, cast

import typer

from habilis.agent.agent import Agent
from habilis.agent.hooks.harmless import neutral, one_line
from habilis.cli.runs.flow_progress import steps_told
from habilis.cli.run import report
from habilis.cli.interrupt import INTERRUPTED, run_interruptible
from habilis.cli.run_view import read_settings, say
from habilis.core.errors import HabilisError
from habilis.core.settings import load_settings
from habilis.flows.contract import FlowPaused
from habilis.flows.definitions import Flow
from habilis.flows.workflow import Workflow
from habilis.journal import OnChange

AnyFlow = Flow[..., Any]


def load_app(name: str, *, where: str | None, user: str | None) -> 'Agent[Any] | AnyFlow':
    """The agent or flow at `module:name`, also of a module in this folder. Raises `BadParameter`.

    The program sees the journal that was named as if it were set.
    """
    module, colon, path = name.partition(':')
    if not (module and colon and path):
        raise _refused(f'{name!r} does not name anything: expected module:name, such as my_program:agent')
    os.environ.update({n: v for n, v in {'HABILIS_JOURNAL': where, 'HABILIS_USER': user}.items() if v})
    sys.path.insert(0, os.getcwd())
    try:
        found: object = importlib.import_module(module)
        for part in path.split('.'):
            found = getattr(found, part)
    except Exception as error:  # a program may raise anything when it is imported
        text = f'{name} cannot be had: {type(error).__name__}: {error}'
        raise _refused(one_line(text, 500)) from None
    if isinstance(found, Workflow):
        return found.flow
    if isinstance(found, (Agent, Flow)):
        return cast('Agent[Any] | AnyFlow', found)
    raise _refused(f'{name} is of {type(found).__name__}, not an Agent, a Flow or a Workflow')


def _refused(msg: str) -> typer.BadParameter:
    return typer.BadParameter(msg, param_hint='--app')


def resume_flow(
    flow: AnyFlow,
    run: str,
    *,
    where: str | None,
    user: str | None,
    on_change: OnChange,
    command: str,
    as_json: bool = False,
    quiet: bool = False,
) -> int:
    """Go on with a flow, tell its steps unless `quiet`, and print what it returns; the exit code."""
    settings = read_settings(lambda: load_settings(None, journal=where, user=user))

    async def work() -> object:
        async with contextlib.nullcontext() if quiet else steps_told(settings.journal, run):
            return await flow.resume(run, journal=settings.journal, user=settings.user, on_change=on_change)

    try:
        value = run_interruptible(work)
    except KeyboardInterrupt:
        say(f'stopped; go on with: {command}')
        return INTERRUPTED
    except FlowPaused as paused:
        for question in paused.questions:
            say(f'{one_line(question.path, 200)} waits for a person: {neutral(question.text)}')
        say(f'see how to answer: {command.replace(" resume ", " show ", 1)}')
        if as_json:
            print(json.dumps({'output': None, 'ended': 'approval', 'run_id': run}), flush=True)
        return report.QUESTION
    except HabilisError:
        raise
    except Exception as error:  # of the flow itself
        where_in = ''.join(f' ({note})' for note in getattr(error, '__notes__', ()))
        say(f'{run} failed: {one_line(f"{type(error).__name__}: {error}{where_in}", 1000)}')
        return report.FAILED
    if as_json:
        print(json.dumps({'output': report.packed(value), 'ended': 'answer', 'run_id': run}), flush=True)
        return report.ANSWERED
    text = report.answer_text(value)
    print(neutral(text) if sys.stdout.isatty() else text, flush=True)
    return report.ANSWERED
