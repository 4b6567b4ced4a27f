"""Arguments of a flow or step: bind them to its parameters, validate them against its hints, encode and decode them."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from habilis.core.codec import Json
from habilis.core.dataclass_codec import pack_or_repr
from habilis.core.errors import NotDurable, RunChanged, ToolArgumentsError, ToolDefinitionError
from habilis.core.previews import shorten
from habilis.flows.contract import FlowArgumentsError, FlowDefinitionError
from habilis.journal.scope import ARGUMENTS, CALL
from habilis.journal.values import Codec, fingerprint
from habilis.tools.context import context_of
from habilis.tools.parameters import Parameters, read_signature
from habilis.tools.validation import TypeValidator

_EMPTY = inspect.Parameter.empty
_MAX_TITLE = 200


class FunctionInputs:
    """The parameters and the result of one function."""

    def __init__(self, name: str, function: Callable[..., object], local_names: Mapping[str, object]) -> None:
        try:
            signature = read_signature(name, function, local_names)
            _refuse_context(name, signature)
        except ToolDefinitionError as error:
            msg = str(error).replace('cannot be a tool', 'cannot be a step').replace('before the tool', 'before it')
            raise FlowDefinitionError(msg) from error
        self.name = name
        self.signature = signature
        """The signature, with hints that were written as text resolved to types."""

        self._parameters = Parameters(name, _validatable(signature))
        self._codecs = {
            parameter.name: Codec[object](_encoded_type(parameter), what=f'{parameter.name!r}')
            for parameter in signature.parameters.values()
        }
        result = signature.return_annotation
        self.result = Codec[Any](None if result is _EMPTY else result, what=f'the result of {name}')

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> inspect.BoundArguments:
        """Bind and validate arguments. Raises `FlowArgumentsError`."""
        try:
            return self._parameters.validate(args, kwargs)
        except ToolArgumentsError as error:
            raise FlowArgumentsError(str(error)) from None

    def bind_named(self, arguments: Mapping[str, object]) -> inspect.BoundArguments:
        """Bind and validate arguments given by name. Raises `FlowArgumentsError`."""
        try:
            return self._parameters.validate_named(arguments)
        except ToolArgumentsError as error:
            raise FlowArgumentsError(str(error)) from None

    def key(self, bound: inspect.BoundArguments) -> str:
        """A digest of the arguments."""
        return fingerprint(self._parameters.complete(bound))

    def title(self, bound: inspect.BoundArguments) -> str:
        """The arguments in one line, for lists of runs."""
        text = ', '.join(f'{name}={shorten(value, 80)}' for name, value in bound.arguments.items())
        return text if len(text) <= _MAX_TITLE else f'{text[: _MAX_TITLE - 1]}…'

    def opening(self, bound: inspect.BoundArguments) -> Json:
        """The arguments for readers of the record. They need not be decoded, so any can be recorded."""
        arguments = pack_or_repr(self._parameters.complete(bound))
        return {CALL: f'{self.name}({self.title(bound)})', ARGUMENTS: arguments}

    def write(self, bound: inspect.BoundArguments) -> dict[str, Json]:
        """The arguments as data, with their defaults, so that changing a default later does not change this run."""
        written: dict[str, Json] = {}
        for name, value in self._parameters.complete(bound).items():
            try:
                written[name] = self._codecs[name].write(value)
            except NotDurable as error:
                if name not in bound.arguments:
                    continue  # a default that cannot be encoded is taken from the code again
                msg = f'{self.name} was not called, because its arguments cannot be recorded: {error}'
                raise FlowArgumentsError(msg) from None
        return written

    def read(self, written: Mapping[str, Json]) -> inspect.BoundArguments:
        """The arguments from their data. Raises `RunChanged` if they no longer match the parameters."""
        try:
            values: dict[str, object] = {}
            for name, value in written.items():
                if name not in self._codecs:
                    msg = f'{name}: no such parameter'
                    raise FlowArgumentsError(msg)
                values[name] = self._codecs[name].read(value)
            return self.bind_named(values)
        except (FlowArgumentsError, NotDurable) as error:
            msg = (
                f'the recorded arguments no longer match {self.name}: {error}\nRestore its former parameters, '
                'or start a new run'
            )
            raise RunChanged(msg) from None


def _refuse_context(name: str, signature: inspect.Signature) -> None:
    if any(context_of(parameter.annotation) is not None for parameter in signature.parameters.values()):
        msg = f'{name} cannot be a tool: a Context is for tools of an agent; pass what it needs as an argument'
        raise ToolDefinitionError(msg)


def _validatable(signature: inspect.Signature) -> inspect.Signature:
    """The signature without hints that pydantic cannot validate: a client, an agent. Such arguments are not checked."""
    parameters = [
        parameter if _can_validate(parameter.annotation) else parameter.replace(annotation=Any)
        for parameter in signature.parameters.values()
    ]
    return signature.replace(parameters=parameters)


def _can_validate(hint: object) -> bool:
    if hint is _EMPTY:
        return True
    try:
        TypeValidator(hint, '')
    except ToolDefinitionError:
        return False
    return True


def _encoded_type(parameter: inspect.Parameter) -> object:
    hint = parameter.annotation
    if hint is _EMPTY:
        return None
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return tuple[hint, ...]
    return dict[str, hint] if parameter.kind is inspect.Parameter.VAR_KEYWORD else hint
