"""Load the agent or flow that `--app MODULE:NAME` names."""

import importlib
import os
import sys
from typing import Any, cast

import typer

from habilis.agent.agent import Agent
from habilis.agent.hooks.sanitize import one_line
from habilis.flows.definitions import Flow
from habilis.flows.workflow import Workflow

AnyFlow = Flow[..., Any]


def load_app(name: str, *, journal: str | None, user: str | None) -> 'Agent[Any] | AnyFlow':
    """Import `module:name`, also from the current folder. Raises `BadParameter`.

    `journal` and `user` become environment variables, so that the program uses them as its settings.
    """
    module, colon, path = name.partition(':')
    if not (module and colon and path):
        raise _error(f'{name!r} is not MODULE:NAME, such as my_program:agent')
    os.environ.update({n: v for n, v in {'HABILIS_JOURNAL': journal, 'HABILIS_USER': user}.items() if v})
    sys.path.insert(0, os.getcwd())
    try:
        found: object = importlib.import_module(module)
        for part in path.split('.'):
            found = getattr(found, part)
    except Exception as error:  # importing a program may raise anything
        text = f'cannot load {name}: {type(error).__name__}: {error}'
        raise _error(one_line(text, 500)) from None
    if isinstance(found, Workflow):
        return found.flow
    if isinstance(found, (Agent, Flow)):
        return cast('Agent[Any] | AnyFlow', found)
    raise _error(f'{name} is of type {type(found).__name__}, not an Agent, a Flow or a Workflow')


def _error(msg: str) -> typer.BadParameter:
    return typer.BadParameter(msg, param_hint='--app')
