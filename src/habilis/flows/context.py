"""Where the running code is: in which flow, and what its steps have given so far."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Generator, Mapping
from contextvars import ContextVar
from types import MappingProxyType

from habilis.flows.contract import FlowError
from habilis.journal import Scope


class FlowContext:
    """The flow around the running code."""

    def __init__(self, name: str, scope: Scope) -> None:
        self.name = name
        self._scope = scope
        self._outputs: dict[str, object] = {}
        self._begun: Counter[str] = Counter()
        self.loop = asyncio.get_running_loop()
        """The only event loop on which its steps may run."""

    @property
    def run(self) -> str:
        """The name of the run."""
        return self._scope.journal.run

    @property
    def path(self) -> str:
        """The place of this flow in its run."""
        return self._scope.path

    @property
    def outputs(self) -> Mapping[str, object]:
        """What the steps of this flow have given: the newest by the name of the step, and each as `name#2`."""
        return MappingProxyType(self._outputs)

    def begin(self, name: str) -> int:
        """A step begins; its number among those of this name."""
        self._begun[name] += 1
        return self._begun[name]

    def keep(self, name: str, number: int, value: object) -> None:
        """A step has given this."""
        self._outputs[name] = self._outputs[f'{name}#{number}'] = value


_flow: ContextVar[FlowContext | None] = ContextVar('habilis_flow', default=None)
_in_step: ContextVar[Scope | None] = ContextVar('habilis_step', default=None)


def current_flow() -> FlowContext:
    """The flow that is running here. Raises `FlowError` outside of one."""
    context = _flow.get()
    if context is None:
        msg = 'no flow is running here: call this inside a function with @flow, or inside one of its steps'
        raise FlowError(msg)
    return context


def flow_here() -> FlowContext | None:
    """The flow that is running here, if there is one."""
    return _flow.get()


def step_here() -> Scope | None:
    """The step that is running here; None in a flow itself."""
    return _in_step.get()


@contextlib.contextmanager
def inside_flow(context: FlowContext) -> Generator[None]:
    """What runs inside is in this flow, and in none of its steps yet."""
    flow, step = _flow.set(context), _in_step.set(None)
    try:
        yield
    finally:
        _in_step.reset(step)
        _flow.reset(flow)


@contextlib.contextmanager
def inside_step(scope: Scope) -> Generator[None]:
    """What runs inside is in this step."""
    token = _in_step.set(scope)
    try:
        yield
    finally:
        _in_step.reset(token)
