"""An agent in short: its `repr`, and what a notebook shows of it."""

from collections.abc import Iterator
from typing import Any

from habilis.agent.hooks.html import block, page, table
from habilis.agent.options import AgentSetup, AnyTool
from habilis.core.previews import shorten
from habilis.models.config import ModelConfig
from habilis.tools import Toolset

MAX_TOOLS = 10
MAX_LENGTH = 200


def agent_repr(setup: AgentSetup) -> str:
    """One line: the model, and what differs from an agent without options."""
    parts = [repr(_model(setup))] if setup.model is not None else []
    if setup.name != 'agent':
        parts.append(f'name={setup.name!r}')
    if setup.output_type is not None:
        parts.append(f'output_type={_type(setup.output_type)}')
    if names := [name for name, _ in _tools(setup)]:
        more = ', …' if len(names) > MAX_TOOLS else ''
        parts.append(f'tools=[{", ".join(names[:MAX_TOOLS])}{more}]')
    return f'Agent({", ".join(parts)})'


def agent_html(setup: AgentSetup) -> str:
    """The same as a table, with what the tools do."""
    rows = [('model', _model(setup) or 'as configured'), ('output', _type(setup.output_type) or 'anything')]
    if setup.instructions:
        rows.append(('instructions', shorten(setup.instructions, MAX_LENGTH)))
    rows += [(f'{name}()', text) for name, text in _tools(setup)]
    return page([block(setup.name, 'font-weight:bold'), table((), rows)])


def _model(setup: AgentSetup) -> str:
    match setup.model:
        case None:
            return ''
        case str():
            return setup.model
        case ModelConfig(model=name):
            return name
        case model:
            return model.name


def _type(kind: Any) -> str:
    if kind is None:
        return ''
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _tools(setup: AgentSetup) -> Iterator[tuple[str, str]]:
    """Name and first line of the description of each tool."""
    for given in setup.tools:
        for tool in given.tools if isinstance(given, Toolset) else (given,):
            yield _name(tool), (getattr(tool, '__doc__', None) or '').strip().partition('\n')[0]


def _name(tool: AnyTool) -> str:
    return str(getattr(tool, 'name', None) or getattr(tool, '__name__', None) or type(tool).__name__)
