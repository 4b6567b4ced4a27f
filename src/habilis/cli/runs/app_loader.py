"""Load the agent or flow that `--app MODULE:NAME` names."""

import os
from typing import Any, cast

import typer

from habilis.agent.agent import Agent
from habilis.cli.program import load_object
from habilis.flows.definitions import Flow
from habilis.flows.workflow import Workflow

AnyFlow = Flow[..., Any]


def load_app(name: str, *, journal: str | None, user: str | None) -> 'Agent | AnyFlow':
    """Import `module:name`, also from the current folder. Raises `BadParameter`.

    `journal` and `user` become environment variables, so that the program uses them as its settings.
    """
    os.environ.update({n: v for n, v in {'HABILIS_JOURNAL': journal, 'HABILIS_USER': user}.items() if v})
    found = load_object(name, option='--app', example='my_program:agent')
    if isinstance(found, Workflow):
        return found.flow
    if isinstance(found, (Agent, Flow)):
        return cast('Agent | AnyFlow', found)
    msg = f'{name} is of type {type(found).__name__}, not an Agent, a Flow or a Workflow'
    raise typer.BadParameter(msg, param_hint='--app')
