"""The wiring of a `Workflow`: make steps of functions, and check that parameters name outputs of earlier steps."""

import inspect
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import cast

from habilis.core.similar_names import similar_names
from habilis.flows.contract import FlowDefinitionError
from habilis.flows.definitions import Flow, FlowStep
from habilis.flows.nodes import INPUT, Node, Select, WorkflowStep
from habilis.flows.recorded import GivenOptions, checked_options

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def nested_step(
    flow: Flow[..., object], nodes: tuple[Node, ...], *, name: str | None, source: str | Select, given: GivenOptions
) -> WorkflowStep:
    """A workflow as a step of another one."""
    flow = _renamed(flow, name, given)
    return WorkflowStep(name=flow.name, recorded=flow, nodes=nodes, source=source)


def workflow_step(part: Callable[..., object], *, name: str | None, given: GivenOptions) -> WorkflowStep:
    """A function, step or flow as a step of a workflow."""
    if isinstance(part, Flow):
        recorded = _renamed(cast('Flow[..., object]', part), name, given)
    else:
        recorded = _as_step(part, name, given)
    return WorkflowStep(name=recorded.name, recorded=recorded, parameters=_parameters(recorded))


def _renamed(flow: Flow[..., object], name: str | None, given: GivenOptions) -> Flow[..., object]:
    if given:
        msg = f'{flow.name} is a flow, whose steps have their own options: leave out {", ".join(given)}'
        raise FlowDefinitionError(msg)
    if name in {None, flow.name}:
        return flow
    return Flow[..., object](flow.function, name=name, timeout=flow.options.timeout)


def _as_step(part: Callable[..., object], name: str | None, given: GivenOptions) -> FlowStep[..., object]:
    if isinstance(part, FlowStep):
        step = cast('FlowStep[..., object]', part)
        if not given and name in {None, step.name}:
            return step
        options = checked_options(**cast('GivenOptions', asdict(step.options) | given))
        return FlowStep[..., object](step.function, name=name or step.name, options=options)
    if not callable(part):
        msg = f'{part!r} cannot be a step: give a function, a step, a flow or a Workflow'
        raise FlowDefinitionError(msg)
    return FlowStep[..., object](part, name=name, options=checked_options(**given))


def _parameters(recorded: FlowStep[..., object] | Flow[..., object]) -> tuple[inspect.Parameter, ...]:
    parameters = tuple(inspect.signature(recorded.function).parameters.values())
    for parameter in parameters:
        if parameter.kind in _VARIADIC:
            msg = f'{recorded.name} takes *{parameter.name}: parameters of a Workflow step must name outputs'
            raise FlowDefinitionError(msg)
    return parameters


@dataclass(kw_only=True)
class OutputNames:
    """The names of the outputs that a step may use."""

    names: list[str] = field(default_factory=lambda: [INPUT])

    def check(self, step: WorkflowStep, *, own: str | None = None, item: bool = False) -> None:
        """Raise `FlowDefinitionError` unless every required parameter names an output.

        Args:
            step: the step to check.
            own: the name of the step's own output, if it repeats.
            item: its first parameter is an item, not an output.
        """
        if step.nodes:
            if not item:
                self.check_source(step.source, f'{step.name} takes as its input')
            return
        if item and not step.parameters:
            msg = f'{step.name} has no parameters: its first parameter must be the item'
            raise FlowDefinitionError(msg)
        for parameter in step.parameters[1:] if item else step.parameters:
            required = parameter.default is inspect.Parameter.empty
            if parameter.kind not in _NAMED and required:
                msg = f'{step.name} takes {parameter.name} by position only: outputs are passed by name'
                raise FlowDefinitionError(msg)
            if required and parameter.name not in self.names:
                hint = '; on the first round it has no value yet: give it a default' if parameter.name == own else ''
                raise self._unknown(f'{step.name} takes', parameter.name, hint)

    def check_source(self, source: object, what: str) -> None:
        """Raise `FlowDefinitionError` unless it is the name of an output, or a function."""
        if isinstance(source, str):
            if source not in self.names:
                raise self._unknown(what, source, '')
        elif not callable(source):
            msg = f'{what} {source!r}: give the name of an output, or a function of the outputs'
            raise FlowDefinitionError(msg)

    def add(self, name: str) -> None:
        """Add an output. Raises `FlowDefinitionError` if there is one of this name."""
        if name in self.names:
            msg = f'two outputs are named {name!r}: rename one of them with name=…'
            raise FlowDefinitionError(msg)
        self.names.append(name)

    def _unknown(self, what: str, name: str, hint: str) -> FlowDefinitionError:
        near = similar_names(name, self.names, n=1)
        hint = f'; did you mean {near[0]!r}?' if near and not hint else hint
        return FlowDefinitionError(
            f'{what} {name!r}, which is not the output of an earlier step{hint} (outputs: {", ".join(self.names)})'
        )
