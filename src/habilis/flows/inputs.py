"""What goes into a flow or step: bound to its parameters, checked against its hints, written down and read back."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from habilis.core.codec import Json
from habilis.core.errors import NotDurable, RunChanged, ToolArgumentsError, ToolDefinitionError
from habilis.flows.contract import FlowArgumentsError, FlowDefinitionError
from habilis.journal.values import Codec, fingerprint
from habilis.tools.parameters import Parameters, read_signature
from habilis.sandbox.previews import shorten
from habilis.tools.validation import TypeValidator

_EMPTY = inspect.Parameter.empty
_TITLE = 200


class Inputs:
    """The parameters of one function, and its result."""

    def __init__(self, name: str, function: Callable[..., object], local_names: Mapping[str, object]) -> None:
        try:
            signature = read_signature(name, function, local_names)
        except ToolDefinitionError as error:
            msg = str(error).replace('cannot be a tool', 'cannot be a step').replace('before the tool', 'before it')
            raise FlowDefinitionError(msg) from error
        self.name = name
        self.signature = signature
        """With hints that are types, also where they were written as text."""

        self._parameters = Parameters(name, _checkable(signature))
        self._codecs = {
            parameter.name: Codec[object](_saved_as(parameter), what=f'{parameter.name!r}')
            for parameter in signature.parameters.values()
        }
        result = signature.return_annotation
        self.result = Codec[Any](None if result is _EMPTY else result, what=f'what {name} returned')

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> inspect.BoundArguments:
        """The arguments as the hints want them. Raises `FlowArgumentsError`."""
        try:
            return self._parameters.validate(args, kwargs)
        except ToolArgumentsError as error:
            raise FlowArgumentsError(str(error)) from None

    def bind_named(self, arguments: Mapping[str, object]) -> inspect.BoundArguments:
        """The same for arguments that all come by name."""
        try:
            return self._parameters.validate_named(arguments)
        except ToolArgumentsError as error:
            raise FlowArgumentsError(str(error)) from None

    def key(self, bound: inspect.BoundArguments) -> str:
        """A digest of the arguments."""
        return fingerprint(self._parameters.complete(bound))

    def title(self, bound: inspect.BoundArguments) -> str:
        """The arguments in a line, for people."""
        text = ', '.join(f'{name}={shorten(value, 80)}' for name, value in bound.arguments.items())
        return text if len(text) <= _TITLE else f'{text[: _TITLE - 1]}…'

    def write(self, bound: inspect.BoundArguments) -> dict[str, Json]:
        """The arguments with their defaults as data: a default that is changed later does not change this run."""
        written: dict[str, Json] = {}
        for name, value in self._parameters.complete(bound).items():
            try:
                written[name] = self._codecs[name].write(value)
            except NotDurable as error:
                if name not in bound.arguments:
                    continue  # a default that cannot be saved is had from the code again
                msg = f'{self.name} was not called, because its run could not be resumed: {error}'
                raise FlowArgumentsError(msg) from None
        return written

    def read(self, written: Mapping[str, Json]) -> inspect.BoundArguments:
        """The arguments again. Raises `RunChanged` if they no longer fit."""
        try:
            values: dict[str, object] = {}
            for name, value in written.items():
                if name not in self._codecs:
                    msg = f'{name}: there is no such parameter any more'
                    raise FlowArgumentsError(msg)
                values[name] = self._codecs[name].read(value)
            return self.bind_named(values)
        except (FlowArgumentsError, NotDurable) as error:
            msg = (
                f'what this run was given no longer fits {self.name}: {error}\nGo back to the parameters that it had, '
                'or start a new run'
            )
            raise RunChanged(msg) from None


def _checkable(signature: inspect.Signature) -> inspect.Signature:
    """Without the hints that pydantic cannot check: a client, an agent. They are taken as they come."""
    parameters = [
        parameter if _can_check(parameter.annotation) else parameter.replace(annotation=Any)
        for parameter in signature.parameters.values()
    ]
    return signature.replace(parameters=parameters)


def _can_check(hint: object) -> bool:
    if hint is _EMPTY:
        return True
    try:
        TypeValidator(hint, '')
    except ToolDefinitionError:
        return False
    return True


def _saved_as(parameter: inspect.Parameter) -> object:
    hint = parameter.annotation
    if hint is _EMPTY:
        return None
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return tuple[hint, ...]
    return dict[str, hint] if parameter.kind is inspect.Parameter.VAR_KEYWORD else hint
