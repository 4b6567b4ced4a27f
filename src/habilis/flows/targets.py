"""Targets: flows by `module:name`, so that any process can import them."""

import importlib
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import cast

from habilis.agent import Agent
from habilis.flows.contract import FlowError
from habilis.flows.definitions import Flow
from habilis.flows.workflow import Workflow

MAIN = '__main__'


class TargetNotFound(FlowError):
    """This process cannot import a flow of that name."""


def load_target(target: str, *, apps: Sequence[str] = ()) -> Flow[..., object]:
    """The flow at `module:name`. Raises `TargetNotFound`.

    Args:
        target: `module:name`, as in `RunInfo.name`.
        apps: modules to search instead of `__main__`, for flows of a script.
    """
    module, _, name = target.partition(':')
    if not module or not name:
        msg = f'{target!r} is not a valid target: write it as `module:name`'
        raise TargetNotFound(msg)
    for place in apps if module == MAIN and apps else [module]:
        found = _find(_import(place, target), name)
        if found is not None:
            return found
    msg = f'{module} has no flow named {name}: define it with @flow at the top of the module'
    raise TargetNotFound(msg)


def load_name(target: str) -> object:
    """The object at `module:name`, such as an agent. Raises `TargetNotFound`."""
    module, _, name = target.partition(':')
    found = _attribute(_import(module, target), name) if module and name else None
    if found is None:
        msg = f'there is no {target!r}: write it as `module:name`'
        raise TargetNotFound(msg)
    return found


def agent_flow(agent: Agent[object]) -> Flow[..., object]:
    """A flow that runs an agent on a task, so that an engine can execute it. It returns the answer."""

    async def work(task: str, variables: dict[str, object] | None = None) -> object:
        result = await agent.run(task, variables=variables)
        if result.ended != 'answer':
            msg = f'{agent.name} ended without an answer: {result.ended}'
            raise FlowError(msg)
        return result.output

    if agent.output_type is not None:
        work.__annotations__['return'] = agent.output_type
    return Flow(work, name=f'{agent.name} task')


def _import(module: str, target: str) -> ModuleType:
    known = sys.modules.get(module)
    if known is not None:
        return known
    try:
        return importlib.import_module(module)
    except ImportError as error:
        msg = f'cannot import {target}: {error}; make its module importable here'
        raise TargetNotFound(msg) from error


def _attribute(module: ModuleType, name: str) -> object:
    found: object = module
    for part in name.split('.'):
        found = getattr(found, part, None)
    return found


def _find(module: ModuleType, name: str) -> Flow[..., object] | None:
    found = _attribute(module, name)
    if isinstance(found, Workflow):
        return found.flow
    if isinstance(found, Flow):
        return cast('Flow[..., object]', found)
    if isinstance(found, Agent):
        return agent_flow(cast('Agent[object]', found))
    for other in vars(module).values():  # its variable may have another name than the flow
        if isinstance(other, Workflow) and other.name == name:
            return other.flow
        if isinstance(other, Flow) and cast('Flow[..., object]', other).function.__qualname__ == name:
            return cast('Flow[..., object]', other)
    return None
