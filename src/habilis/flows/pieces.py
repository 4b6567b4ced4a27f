"""The pieces of a `Workflow`: what is called, with which of the outputs before it."""

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from habilis.flows.contract import FlowDefinitionError
from habilis.flows.definitions import Flow, Step, checked_options

if TYPE_CHECKING:
    from habilis.flows.nodes import Node
    from habilis.flows.workflow import Workflow

Outputs = Mapping[str, object]
"""What the steps before have given, by their names; `input` is what the workflow was given."""

Choose = Callable[[Outputs], object]
INPUT = 'input'
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_MORE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One step, or a workflow that is used as one."""

    name: str
    recorded: Step[..., Any] | Flow[..., Any]
    inside: 'tuple[Node, ...]' = ()
    """The parts of a nested workflow."""

    source: str | Choose = INPUT
    """Of a nested workflow: what it is given."""

    parameters: tuple[inspect.Parameter, ...] = ()

    async def take(self, outputs: Outputs) -> Any:
        """Do it with the outputs that its parameters name."""
        if self.inside:
            return await self.recorded(chosen(self.source, outputs))
        return await self.recorded(**self._named(self.parameters, outputs))

    async def take_item(self, item: object, outputs: Outputs) -> Any:
        """Do it with this item as its first argument."""
        return await self.recorded(item, **self._named(self.parameters[1:], outputs))

    def _named(self, parameters: tuple[inspect.Parameter, ...], outputs: Outputs) -> dict[str, object]:
        return {parameter.name: outputs[parameter.name] for parameter in parameters if parameter.name in outputs}

    @property
    def result(self) -> Any:
        """The type of what it gives."""
        hint = self.recorded.inputs.signature.return_annotation
        return Any if hint is inspect.Signature.empty else hint


def chosen(source: str | Choose, outputs: Outputs) -> object:
    """The output of that name, or what the function makes of them."""
    return outputs[source] if isinstance(source, str) else source(outputs)


def make_piece(
    part: 'Callable[..., Any] | Workflow', *, name: str | None = None, source: str | Choose = INPUT, **options: Any
) -> Piece:
    """A piece of a function, step, flow or workflow."""
    from habilis.flows.workflow import Workflow

    given = {key: value for key, value in options.items() if value is not None}
    if isinstance(part, (Workflow, Flow)):
        flow: Flow[..., Any] = part.flow if isinstance(part, Workflow) else cast('Flow[..., Any]', part)
        if given:
            msg = f'{flow.name} is a flow, and its steps have options of their own: leave out {", ".join(given)}'
            raise FlowDefinitionError(msg)
        if name not in {None, flow.name}:
            flow = Flow[..., Any](flow.function, name=name, timeout=flow.timeout)
        if isinstance(part, Workflow):
            return Piece(name=flow.name, recorded=flow, inside=tuple(part.nodes), source=source)
        return Piece(name=flow.name, recorded=flow, parameters=_parameters(flow))
    step = _as_step(part, name, given)
    return Piece(name=step.name, recorded=step, parameters=_parameters(step))


def _as_step(part: Callable[..., Any], name: str | None, given: dict[str, Any]) -> Step[..., Any]:
    if isinstance(part, Step):
        known = cast('Step[..., Any]', part)
        if not given and name in {None, known.name}:
            return known
        own = known.options
        merged = {field: getattr(own, field) for field in own.__dataclass_fields__} | given
        return Step[..., Any](known.function, name=name or known.name, options=checked_options(**merged))
    if not callable(part):
        msg = f'{part!r} cannot be a step: give a function, a step, a flow or a Workflow'
        raise FlowDefinitionError(msg)
    return Step[..., Any](part, name=name, options=checked_options(**given))


def _parameters(recorded: Step[..., Any] | Flow[..., Any]) -> tuple[inspect.Parameter, ...]:
    parameters = tuple(inspect.signature(recorded.function).parameters.values())
    for parameter in parameters:
        if parameter.kind in _MORE:
            msg = f'{recorded.name} takes *{parameter.name}; a step of a Workflow names the outputs that it wants'
            raise FlowDefinitionError(msg)
    return parameters


@dataclass(kw_only=True)
class Known:
    """The names that a piece may use."""

    names: list[str] = field(default_factory=lambda: [INPUT])

    def check(self, piece: Piece, *, own: str | None = None, item: bool = False) -> None:
        """Raise `FlowDefinitionError` unless all that a piece needs is there before it."""
        if piece.inside:
            if not item:
                self.check_source(piece.source, f'{piece.name} is given')
            return
        if item and not piece.parameters:
            msg = f'{piece.name} takes nothing: its first parameter is the item'
            raise FlowDefinitionError(msg)
        for parameter in piece.parameters[1:] if item else piece.parameters:
            needed = parameter.default is inspect.Parameter.empty
            if parameter.kind not in _NAMED and needed:
                msg = f'{piece.name} takes {parameter.name} by position only: outputs are given by name'
                raise FlowDefinitionError(msg)
            if needed and parameter.name not in self.names:
                own_name = '; on the first round there is none yet: give it a default' if parameter.name == own else ''
                raise self._unknown(f'{piece.name} takes', parameter.name, own_name)

    def check_source(self, source: object, what: str) -> None:
        """The same for the name of an output."""
        if isinstance(source, str):
            if source not in self.names:
                raise self._unknown(what, source, '')
        elif not callable(source):
            msg = f'{what} {source!r}: give the name of an output, or a function of the outputs'
            raise FlowDefinitionError(msg)

    def add(self, name: str) -> None:
        """This one is there from now on."""
        if name in self.names:
            msg = f'there are two outputs named {name!r}: give one of them another name with name=…'
            raise FlowDefinitionError(msg)
        self.names.append(name)

    def _unknown(self, what: str, name: str, more: str) -> FlowDefinitionError:
        near = difflib.get_close_matches(name, self.names, n=1)
        meant = f'; did you mean {near[0]!r}?' if near and not more else more
        return FlowDefinitionError(
            f'{what} {name!r}, which nothing before it gives{meant} (there is: {", ".join(self.names)})'
        )
