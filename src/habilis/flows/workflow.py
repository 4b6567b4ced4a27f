"""`Workflow`: a flow built step by step, so that its graph is known. It runs like any other flow."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, Self, cast

from habilis.flows.contract import FlowDefinitionError, StepStatus
from habilis.flows.definitions import Flow
from habilis.flows.mermaid import draw, not_started
from habilis.flows.nodes import (
    INPUT,
    EachNode,
    LoopNode,
    Node,
    ParallelNode,
    Select,
    StepNode,
    WhenNode,
    WorkflowStep,
)
from habilis.flows.recorded import GivenOptions
from habilis.flows.status import flow_status
from habilis.flows.wiring import OutputNames, nested_step, workflow_step
from habilis.journal import Store


class Workflow:
    """A flow that is built step by step.

    Its steps are functions whose parameters name outputs of earlier steps, or `input`. A parameter with a default may
    name an output that does not exist. The output of the last step is the result.
    """

    def __init__(self, name: str, *, input_type: object = None, timeout: float | None = None) -> None:
        """Make an empty workflow.

        Args:
            name: the name of the flow.
            input_type: the type of its input; None: anything, or nothing.
            timeout: seconds for the whole workflow.
        """
        self.name = name
        self._input_type = input_type
        self._timeout = timeout
        self._nodes: list[Node] = []
        self._outputs = OutputNames()
        self._flow: Flow[..., object] | None = None
        self._module = str(sys._getframe(1).f_globals.get('__name__', '__main__'))  # pyright: ignore[reportPrivateUsage]

    def __repr__(self) -> str:
        return f'<workflow {self.name}: {", ".join(node.name for node in self._nodes) or "empty"}>'

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes, in order."""
        return tuple(self._nodes)

    # Steps ------------------------------------------------------------------------------------------------------------

    def step(
        self,
        part: 'Callable[..., object] | Workflow',
        *,
        name: str | None = None,
        input: str | Select = INPUT,
        retries: int | None = None,
        retry_delay: float | None = None,
        timeout: float | None = None,
        idempotent: bool | None = None,
    ) -> Self:
        """Add a step.

        Args:
            part: a function, a step, a flow or another workflow.
            name: the name of its output; by default the name of the part.
            input: for a workflow: the name of the output that is its input, or a function of the outputs.
            retries: this and the following options: see `habilis.flows.step`.
        """
        options = {'retries': retries, 'retry_delay': retry_delay, 'timeout': timeout, 'idempotent': idempotent}
        step = _workflow_step(part, name=name, source=input, **options)
        self._outputs.check(step)
        return self._add(StepNode(step=step), step.name)

    def parallel(self, *parts: 'Callable[..., object] | Workflow') -> Self:
        """Add steps that run at the same time. They do not see each other's outputs; later steps see all of them."""
        if len(parts) < 2:
            msg = 'parallel: give two steps or more'
            raise FlowDefinitionError(msg)
        steps = tuple(_workflow_step(part) for part in parts)
        for step in steps:
            self._outputs.check(step)
        return self._add(ParallelNode(steps=steps), *(step.name for step in steps))

    def each(
        self,
        part: 'Callable[..., object] | Workflow',
        *,
        over: str | Select,
        limit: int | None = None,
        name: str | None = None,
    ) -> Self:
        """Add a step that runs for each item; its output is a list, in the order of the items.

        Args:
            part: its first parameter is the item; the others name outputs.
            over: the name of an output that is a list, or a function of the outputs that returns one.
            limit: maximum number of items at a time; 1 for one after the other, None for all at once.
            name: the name of the list.
        """
        if limit is not None and limit < 1:
            msg = f'limit={limit!r}: give 1 or more, or None'
            raise FlowDefinitionError(msg)
        step = _workflow_step(part)
        self._outputs.check_source(over, f'{step.name} iterates over')
        self._outputs.check(step, item=True)
        return self._add(EachNode(step=step, name=name or step.name, over=over, limit=limit), name or step.name)

    def loop(
        self,
        *,
        while_: Select,
        body: 'Callable[..., object] | Workflow',
        limit: int = 100,
        name: str | None = None,
        input: str | Select = INPUT,
    ) -> Self:
        """Add a step that repeats while a condition holds.

        Args:
            while_: the condition, a function of the outputs; called before each round.
            body: the step. Its latest output has its own name; the step itself can use it from the second round on.
            limit: maximum number of rounds; then the flow fails.
            name: the name of the list of all its outputs (default: `<body>_rounds`).
            input: see `step`.
        """
        if limit < 1:
            msg = f'limit={limit!r}: give 1 or more'
            raise FlowDefinitionError(msg)
        step = _workflow_step(body, source=input)
        rounds = name or f'{step.name}_rounds'
        self._outputs.check(step, own=step.name)
        return self._add(LoopNode(step=step, name=rounds, condition=while_, limit=limit), step.name, rounds)

    def when(
        self,
        condition: Select,
        then: 'Callable[..., object] | Workflow',
        otherwise: 'Callable[..., object] | Workflow | None' = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Add one of two steps, chosen by a condition. Without `otherwise`, the output may be None.

        Args:
            condition: a function of the outputs.
            then: the step if the condition holds.
            otherwise: the step if it does not; None for none.
            name: the name of the output (default: the name of `then`).
        """
        first, second = _workflow_step(then), None if otherwise is None else _workflow_step(otherwise)
        for step in (first, second):
            if step is not None:
                self._outputs.check(step)
        node = WhenNode(condition=condition, name=name or first.name, then=first, otherwise=second)
        return self._add(node, node.name)

    def _add(self, node: Node, *names: str) -> Self:
        outputs = OutputNames(names=list(self._outputs.names))
        for name in names:
            outputs.add(name)
        self._outputs = outputs
        self._nodes.append(node)
        self._flow = None
        return self

    # Use as a flow ----------------------------------------------------------------------------------------------------

    @property
    def flow(self) -> Flow[..., object]:
        """The workflow as a flow: call, start or resume it, or give it to an agent as a tool."""
        if not self._nodes:
            msg = f'{self.name} has no steps yet'
            raise FlowDefinitionError(msg)
        if self._flow is None:
            self._flow = self._make_flow(tuple(self._nodes))
        return self._flow

    def _make_flow(self, nodes: tuple[Node, ...]) -> Flow[..., object]:
        async def run(input: object) -> object:
            outputs: dict[str, object] = {INPUT: input}
            value: object = None
            for node in nodes:
                value = await node.run(outputs)
            return value

        run.__name__ = run.__qualname__ = self.name
        run.__module__ = self._module
        run.__doc__ = f'{self.name}: {", then ".join(node.name for node in nodes)}.'
        input_type = Any if self._input_type is None else self._input_type
        run.__annotations__ = {INPUT: input_type, 'return': nodes[-1].result}
        if self._input_type is None:
            run.__defaults__ = (None,)
        return Flow[..., object](run, name=self.name, timeout=self._timeout)

    async def status(self, store: Store, run: str, *, user: str | None = None) -> list[StepStatus]:
        """The steps of a run: those that have started, then those that have not, as `not run`."""
        started = await flow_status(store, run, user=user)
        return [*started, *not_started(self.name, self._nodes, started)]

    def mermaid(self, status: Sequence[StepStatus] | None = None) -> str:
        """The workflow as a Mermaid flowchart; with a status, each step has the colour of its state."""
        return draw(self._nodes, status)


def _workflow_step(
    part: Callable[..., object] | Workflow,
    *,
    name: str | None = None,
    source: str | Select = INPUT,
    **options: float | bool | None,
) -> WorkflowStep:
    given = cast('GivenOptions', {key: value for key, value in options.items() if value is not None})
    if isinstance(part, Workflow):
        return nested_step(part.flow, tuple(part.nodes), name=name, source=source, given=given)
    return workflow_step(part, name=name, given=given)
