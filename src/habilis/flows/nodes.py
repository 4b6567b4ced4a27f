"""The nodes of a `Workflow`: each runs one or more steps on the outputs so far, and adds its own output."""

import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Union, cast

from habilis.flows.contract import FlowError
from habilis.flows.definitions import Flow, FlowStep
from habilis.flows.parallel import parallel

Outputs = Mapping[str, object]
"""Outputs of earlier steps by name; `input` is the input of the workflow."""

Select = Callable[[Outputs], object]
INPUT = 'input'


class Node(Protocol):
    """One element of a workflow."""

    @property
    def name(self) -> str:
        """The name of its output."""
        ...

    @property
    def result(self) -> object:
        """The type of its output."""
        ...

    async def run(self, outputs: dict[str, object]) -> object:
        """Run it; its output is returned, and added to the outputs."""
        ...


def select(source: str | Select, outputs: Outputs) -> object:
    """The output of this name, or the result of a function of the outputs."""
    return outputs[source] if isinstance(source, str) else source(outputs)


@dataclass(frozen=True, kw_only=True)
class WorkflowStep:
    """A step, a flow or a nested workflow, with the outputs that it takes as arguments."""

    name: str
    recorded: FlowStep[..., object] | Flow[..., object]
    nodes: tuple[Node, ...] = ()
    """The nodes of a nested workflow."""

    source: str | Select = INPUT
    """The input of a nested workflow."""

    parameters: tuple[inspect.Parameter, ...] = ()

    async def run(self, outputs: Outputs) -> object:
        """Call it with the outputs that its parameters name."""
        if self.nodes:
            return await self.recorded(select(self.source, outputs))
        return await self.recorded(**self._arguments(self.parameters, outputs))

    async def run_item(self, item: object, outputs: Outputs) -> object:
        """Call it with this item as the first argument."""
        return await self.recorded(item, **self._arguments(self.parameters[1:], outputs))

    def _arguments(self, parameters: tuple[inspect.Parameter, ...], outputs: Outputs) -> dict[str, object]:
        return {parameter.name: outputs[parameter.name] for parameter in parameters if parameter.name in outputs}

    @property
    def result(self) -> object:
        """The type of its result."""
        hint = self.recorded.inputs.signature.return_annotation
        return Any if hint is inspect.Signature.empty else hint


@dataclass(frozen=True, kw_only=True)
class StepNode:
    """One step."""

    step: WorkflowStep

    @property
    def name(self) -> str:
        """See `Node`."""
        return self.step.name

    @property
    def result(self) -> object:
        """See `Node`."""
        return self.step.result

    async def run(self, outputs: dict[str, object]) -> object:
        """See `Node`."""
        outputs[self.name] = value = await self.step.run(outputs)
        return value


@dataclass(frozen=True, kw_only=True)
class ParallelNode:
    """Several steps at the same time, all with the same outputs."""

    steps: tuple[WorkflowStep, ...]

    @property
    def name(self) -> str:
        """See `Node`."""
        return ' '.join(step.name for step in self.steps)

    @property
    def result(self) -> object:
        """See `Node`."""
        return types.GenericAlias(dict, (str, _union([step.result for step in self.steps])))

    async def run(self, outputs: dict[str, object]) -> object:
        """See `Node`."""
        seen = types.MappingProxyType(dict(outputs))

        async def run(step: WorkflowStep) -> object:
            return await step.run(seen)

        values = await parallel(run, self.steps)
        results = {step.name: value for step, value in zip(self.steps, values, strict=True)}
        outputs.update(results)
        return results


@dataclass(frozen=True, kw_only=True)
class EachNode:
    """A step for each item of a list."""

    step: WorkflowStep
    name: str
    over: str | Select
    limit: int | None

    @property
    def result(self) -> object:
        """See `Node`."""
        return types.GenericAlias(list, (self.step.result,))

    async def run(self, outputs: dict[str, object]) -> object:
        """See `Node`."""
        items = select(self.over, outputs)
        if not isinstance(items, Iterable) or isinstance(items, (str, bytes)):
            msg = f'{self.name} needs a list of items, not {type(items).__name__}'
            raise FlowError(msg)

        async def run(item: object) -> object:
            return await self.step.run_item(item, outputs)

        outputs[self.name] = values = await parallel(run, cast('Iterable[object]', items), limit=self.limit)
        return values


@dataclass(frozen=True, kw_only=True)
class LoopNode:
    """A step that repeats. Its latest output has the name of the step, the list of all has the name of the loop."""

    step: WorkflowStep
    name: str
    condition: Select
    limit: int

    @property
    def result(self) -> object:
        """See `Node`."""
        return types.GenericAlias(list, (self.step.result,))

    async def run(self, outputs: dict[str, object]) -> object:
        """See `Node`."""
        rounds: list[object] = []
        while self.condition(outputs):
            if len(rounds) >= self.limit:
                msg = f'{self.name} reached its limit of {self.limit} rounds: raise the limit, or fix its condition'
                raise FlowError(msg)
            rounds.append(await self.step.run(outputs))
            outputs[self.step.name] = rounds[-1]
        outputs.setdefault(self.step.name, None)
        outputs[self.name] = rounds
        return rounds


@dataclass(frozen=True, kw_only=True)
class WhenNode:
    """One of two steps, or none."""

    condition: Select
    name: str
    then: WorkflowStep
    otherwise: WorkflowStep | None

    @property
    def result(self) -> object:
        """See `Node`."""
        return _union([self.then.result, self.otherwise.result if self.otherwise else None])

    async def run(self, outputs: dict[str, object]) -> object:
        """See `Node`."""
        step = self.then if self.condition(outputs) else self.otherwise
        outputs[self.name] = value = None if step is None else await step.run(outputs)
        return value


def _union(hints: list[object]) -> object:
    try:
        return Any if Any in hints else Union[tuple(hints)]  # noqa: UP007
    except TypeError:  # a hint that is not a type, such as text that could not be resolved
        return Any
