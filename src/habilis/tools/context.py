"""`Context`: what a tool, a function of instructions or an output validator can reach of its run.

A first parameter with this hint is filled by the run. The model does not see it, and no journal stores it.
"""

import functools
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, cast

from typing_extensions import TypeVar

from habilis.core.errors import ToolDefinitionError
from habilis.tools.logs import LOGGER, ToolChannel
from habilis.tools.parameters import read_signature

D_co = TypeVar('D_co', covariant=True, default=Any)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Context(Generic[D_co]):
    """The dependencies of a run, its id, and the log of the running tool."""

    def __init__(self, deps: D_co, *, run_id: str = '', channel: ToolChannel | None = None) -> None:
        """The context of a run. Create one to call a tool in a test: `look_up(Context(db), 7)`."""
        self._deps = deps
        self._run_id = run_id
        self._channel = channel

    @property
    def deps(self) -> D_co:
        """The object passed as `run(…, deps=…)`."""
        return self._deps

    @property
    def run_id(self) -> str:
        """Id of the run; empty outside of one."""
        return self._run_id

    def log(self, text: object) -> None:
        """Add a line to the record of the running tool; outside of a tool, log to `habilis.tools`."""
        if self._channel is None:
            LOGGER.info('%s', text)
        else:
            self._channel.log(text)

    def progress(self, done: float, total: float | None = None, message: str = '') -> None:
        """Say how far the tool is, as a `ToolProgress` event. Of many in a short time, some are dropped."""
        if self._channel is not None:
            self._channel.report(done, total, message)

    def of_call(self, channel: ToolChannel) -> 'Context[D_co]':
        """The context of one call."""
        return Context(self._deps, run_id=self._run_id, channel=channel)

    def __repr__(self) -> str:
        return f'<context of {self._run_id or "no run"}>'


@dataclass(frozen=True, kw_only=True)
class ContextParameter:
    """The first parameter of a function that takes a context."""

    deps: object
    """Type hint of the dependencies."""

    def accepts(self, deps: object) -> bool:
        """Whether these are dependencies of that type, as far as that can be checked."""
        return is_instance(deps, self.deps)

    @property
    def type_name(self) -> str:
        """The type of the dependencies, for messages."""
        return type_name(self.deps)


def is_instance(value: object, hint: object) -> bool:
    """Whether the value is of this type; True if it cannot be checked, unless the value is None."""
    if hint is Any or isinstance(hint, typing.TypeVar):
        return True
    if hint is None:
        return value is None
    kind = hint if isinstance(hint, type) else typing.get_origin(hint)
    try:
        return isinstance(value, cast('type', kind if isinstance(kind, type) and not _is_union(hint) else hint))
    except TypeError:  # such as a protocol that is not `runtime_checkable`
        return value is not None


def _is_union(hint: object) -> bool:
    return typing.get_origin(hint) is typing.Union or isinstance(hint, type(int | str))


def type_name(hint: object) -> str:
    """A type hint as text."""
    return hint.__name__ if isinstance(hint, type) else str(hint)


def take_context(name: str, signature: inspect.Signature) -> tuple[inspect.Signature, ContextParameter | None]:
    """The signature without its context parameter, and that parameter. Raises `ToolDefinitionError`."""
    parameters = list(signature.parameters.values())
    found = [parameter for parameter in parameters if context_of(parameter.annotation) is not None]
    if not found:
        return signature, None
    if found != parameters[:1] or found[0].kind not in _POSITIONAL:
        msg = f'{name} cannot be a tool: {found[-1].name}: Context must be the first parameter, and only the first'
        raise ToolDefinitionError(msg)
    return signature.replace(parameters=parameters[1:]), context_of(found[0].annotation)


def takes_context(function: Callable[..., object]) -> bool:
    """Whether its first parameter is a `Context`. False if its hints cannot be read."""
    try:
        parameters = read_signature('it', function, {}).parameters.values()
    except ToolDefinitionError:
        return False
    return any(context_of(parameter.annotation) is not None for parameter in list(parameters)[:1])


def with_context(function: Callable[..., object], context: Context[object], *args: object) -> Callable[[], object]:
    """The function with these arguments, and before them the context if it has a parameter more."""
    if takes_context(function) or _required(function) > len(args):
        args = (context, *args)
    return functools.partial(function, *args)


def _required(function: Callable[..., object]) -> int:
    """Number of arguments that must be given by position; 0 if that is not known."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 0
    empty = inspect.Parameter.empty
    return sum(parameter.kind in _POSITIONAL and parameter.default is empty for parameter in parameters)


def context_of(hint: object) -> ContextParameter | None:
    """What a hint such as `Context[Db]` says; None for other hints."""
    while not isinstance(hint, type) and hasattr(hint, '__value__'):  # a `type` statement
        hint = cast('Any', hint).__value__
    if typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    if hint is Context:
        return ContextParameter(deps=Any)
    if typing.get_origin(hint) is Context:
        [deps] = typing.get_args(hint)
        return ContextParameter(deps=None if deps is type(None) else deps)
    return None
