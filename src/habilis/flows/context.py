"""The context of running code: the flow and step around it, and the outputs of its steps so far."""

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
        self._counts: Counter[str] = Counter()
        self.loop = asyncio.get_running_loop()
        """The event loop of the flow; its steps run only there."""

    @property
    def run(self) -> str:
        """The id of the run."""
        return self._scope.journal.run

    @property
    def path(self) -> str:
        """The path of this flow in its run."""
        return self._scope.path

    @property
    def outputs(self) -> Mapping[str, object]:
        """Results of the steps of this flow: the latest by step name, and each one as `name#2`."""
        return MappingProxyType(self._outputs)

    def next_number(self, name: str) -> int:
        """The number of a step that starts now, among the steps of this name."""
        self._counts[name] += 1
        return self._counts[name]

    def add_output(self, name: str, number: int, value: object) -> None:
        """Add the result of a step."""
        self._outputs[name] = self._outputs[f'{name}#{number}'] = value


class NewOutput:
    """The output of a step that starts now, unless the step is part of another step."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._flow = _flow.get() if _step.get() is None else None
        self._number = 0 if self._flow is None else self._flow.next_number(name)

    def add(self, value: object) -> None:
        """Add the result of the step to the outputs of the flow."""
        if self._flow is not None:
            self._flow.add_output(self._name, self._number, value)


_flow: ContextVar[FlowContext | None] = ContextVar('habilis_flow', default=None)
_step: ContextVar[Scope | None] = ContextVar('habilis_step', default=None)


def current_flow() -> FlowContext:
    """The flow that is running. Raises `FlowError` outside of a flow."""
    context = _flow.get()
    if context is None:
        msg = 'no flow is running: call this inside a function with @flow, or inside one of its steps'
        raise FlowError(msg)
    return context


def active_flow() -> FlowContext | None:
    """The flow that is running, or None."""
    return _flow.get()


def active_step() -> Scope | None:
    """The step that is running; None in the flow itself."""
    return _step.get()


@contextlib.contextmanager
def inside_flow(context: FlowContext) -> Generator[None]:
    """Make this the running flow."""
    flow, step = _flow.set(context), _step.set(None)
    try:
        yield
    finally:
        _step.reset(step)
        _flow.reset(flow)


@contextlib.contextmanager
def inside_step(scope: Scope) -> Generator[None]:
    """Make this the running step."""
    token = _step.set(scope)
    try:
        yield
    finally:
        _step.reset(token)
