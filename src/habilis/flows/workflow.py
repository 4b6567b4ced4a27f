"""`Workflow`: a flow made of parts, for those who want to see the graph. It runs as any other flow."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, Self

from habilis.flows.contract import FlowDefinitionError, StepStatus
from habilis.flows.definitions import Flow
from habilis.flows.nodes import Each, Loop, Node, One, Side, When
from habilis.flows.pieces import INPUT, Choose, Known, make_piece
from habilis.flows.status import flow_status
from habilis.journal import Store


class Workflow:
    """A flow that is built part by part.

    Its steps are functions whose parameters name what they want: outputs of parts before them, or `input`. A parameter
    with a default may name what is not there. The last part gives the result.
    """

    def __init__(self, name: str, *, input_type: Any = None, timeout: float | None = None) -> None:
        """Nothing runs yet.

        Args:
            name: of the flow.
            input_type: what the workflow is given; None: anything, or nothing.
            timeout: seconds for the whole.
        """
        self.name = name
        self._input_type = input_type
        self._timeout = timeout
        self._nodes: list[Node] = []
        self._known = Known()
        self._flow: Flow[..., Any] | None = None
        self._module = str(sys._getframe(1).f_globals.get('__name__', '__main__'))  # pyright: ignore[reportPrivateUsage]

    def __repr__(self) -> str:
        return f'<workflow {self.name}: {", ".join(node.name for node in self._nodes) or "empty"}>'

    @property
    def nodes(self) -> Sequence[Node]:
        """The parts, in order."""
        return tuple(self._nodes)

    # Parts ------------------------------------------------------------------------------------------------------------

    def step(
        self,
        part: 'Callable[..., Any] | Workflow',
        *,
        name: str | None = None,
        input: str | Choose = INPUT,
        retries: int | None = None,
        retry_delay: float | None = None,
        timeout: float | None = None,
        idempotent: bool | None = None,
    ) -> Self:
        """One more step.

        Args:
            part: a function, a step, a flow or another workflow.
            name: of what it gives, instead of its own.
            input: for a workflow: the name of the output that it is given, or a function of the outputs.
            retries: as those after it: see `habilis.flows.step`.
        """
        options = {'retries': retries, 'retry_delay': retry_delay, 'timeout': timeout, 'idempotent': idempotent}
        piece = make_piece(part, name=name, source=input, **options)
        self._known.check(piece)
        return self._add(One(piece=piece), piece.name)

    def parallel(self, *parts: 'Callable[..., Any] | Workflow') -> Self:
        """Several steps side by side. They do not see each other's outputs; those after them see all."""
        if len(parts) < 2:
            msg = 'parallel: give two steps or more'
            raise FlowDefinitionError(msg)
        pieces = tuple(make_piece(part) for part in parts)
        for piece in pieces:
            self._known.check(piece)
        return self._add(Side(pieces=pieces), *(piece.name for piece in pieces))

    def each(
        self,
        part: 'Callable[..., Any] | Workflow',
        *,
        over: str | Choose,
        limit: int | None = None,
        name: str | None = None,
    ) -> Self:
        """A step for each item; the results are a list, in the order of the items.

        Args:
            part: its first parameter is the item; the others name outputs.
            over: the name of an output that is a list, or a function of the outputs that gives one.
            limit: how many at a time; 1 for one after the other, None for all at once.
            name: of the list.
        """
        if limit is not None and limit < 1:
            msg = f'limit={limit!r}: give 1 or more, or None'
            raise FlowDefinitionError(msg)
        piece = make_piece(part)
        self._known.check_source(over, f'{piece.name} goes over')
        self._known.check(piece, item=True)
        return self._add(Each(piece=piece, name=name or piece.name, over=over, limit=limit), name or piece.name)

    def loop(
        self,
        *,
        while_: Choose,
        body: 'Callable[..., Any] | Workflow',
        limit: int = 100,
        name: str | None = None,
        input: str | Choose = INPUT,
    ) -> Self:
        """A step again and again, as long as a condition holds.

        Args:
            while_: takes the outputs; called before each round.
            body: the step; its newest output is there under its own name, from the second round on for itself too.
            limit: so many rounds, then the flow fails.
            name: of the list of all its outputs; without one, `<body>_rounds`.
            input: see `step`.
        """
        if limit < 1:
            msg = f'limit={limit!r}: give 1 or more'
            raise FlowDefinitionError(msg)
        piece = make_piece(body, source=input)
        rounds = name or f'{piece.name}_rounds'
        self._known.check(piece, own=piece.name)
        return self._add(Loop(piece=piece, name=rounds, condition=while_, limit=limit), piece.name, rounds)

    def when(
        self,
        condition: Choose,
        then: 'Callable[..., Any] | Workflow',
        otherwise: 'Callable[..., Any] | Workflow | None' = None,
        *,
        name: str | None = None,
    ) -> Self:
        """One of two steps; what it gives has one name, that of `then` if no other is given, and may be None.

        Args:
            condition: takes the outputs.
            then: the step if it holds.
            otherwise: the step if not; None for none.
            name: of what comes of it.
        """
        first, second = make_piece(then), None if otherwise is None else make_piece(otherwise)
        for piece in (first, second):
            if piece is not None:
                self._known.check(piece)
        node = When(condition=condition, name=name or first.name, then=first, otherwise=second)
        return self._add(node, node.name)

    def _add(self, node: Node, *names: str) -> Self:
        known = Known(names=list(self._known.names))
        for name in names:
            known.add(name)
        self._known = known
        self._nodes.append(node)
        self._flow = None
        return self

    # The whole --------------------------------------------------------------------------------------------------------

    @property
    def flow(self) -> Flow[..., Any]:
        """The workflow as a flow: to be called, started, resumed, or given to an agent as a tool."""
        if not self._nodes:
            msg = f'{self.name} has no steps yet'
            raise FlowDefinitionError(msg)
        if self._flow is None:
            self._flow = self._make_flow(tuple(self._nodes))
        return self._flow

    def _make_flow(self, nodes: tuple[Node, ...]) -> Flow[..., Any]:
        async def run(input: Any) -> Any:
            outputs: dict[str, object] = {INPUT: input}
            value: object = None
            for node in nodes:
                value = await node.run(outputs)
            return value

        run.__name__ = run.__qualname__ = self.name
        run.__module__ = self._module
        run.__doc__ = f'{self.name}: {", then ".join(node.name for node in nodes)}.'
        wanted = Any if self._input_type is None else self._input_type
        run.__annotations__ = {INPUT: wanted, 'return': nodes[-1].result}
        if self._input_type is None:
            run.__defaults__ = (None,)
        return Flow[..., Any](run, name=self.name, timeout=self._timeout)

    async def status(self, store: Store, run: str, *, user: str | None = None) -> list[StepStatus]:
        """The steps of a run: those that have begun, and those that were not reached as `not run`."""
        from habilis.flows.drawing import planned

        found = await flow_status(store, run, user=user)
        return [*found, *planned(self, found)]

    def mermaid(self, status: Sequence[StepStatus] | None = None) -> str:
        """The workflow as a Mermaid flowchart; with a status, each step has the colour of its state."""
        from habilis.flows.drawing import draw

        return draw(self, status)
