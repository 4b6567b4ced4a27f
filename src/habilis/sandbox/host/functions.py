"""Host tools as the sandbox sees them: a name, a signature, and a function on the host."""

import builtins
import functools
import inspect
import keyword
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from habilis.core.codec import Json
from habilis.core.errors import SandboxError

AnyFunction = Callable[..., Any]
_TAKEN = frozenset({*dir(builtins), 'ToolError', 'display', 'tools'})
"""What code inside finds as builtins. Tools are builtins, too."""


@dataclass(frozen=True, kw_only=True)
class HostFunction:
    """A function of the host that code inside may call."""

    name: str
    call: AnyFunction
    is_async: bool
    parameters: tuple[str, ...] = ()
    signature: str = '(…)'
    doc: str | None = None
    uses_guest: bool = False
    """Whether it has work done by the guest; see `guest_work.py`."""

    is_reserved: bool = False
    """Whether no variable may have its name."""

    ends_cell: bool = False
    """Whether the cell ends, without an error, when the function has returned; for a plain function."""

    def describe(self) -> dict[str, Json]:
        """The description for the guest."""
        return {
            'name': self.name,
            'is_async': self.is_async,
            'parameters': list(self.parameters),
            'signature': self.signature,
            'doc': self.doc,
            'is_reserved': self.is_reserved,
            'ends_cell': self.ends_cell,
        }


def label_arguments(
    parameters: Sequence[str], args: Sequence[object], kwargs: Mapping[str, object]
) -> dict[str, object]:
    """The arguments of a call by parameter; `#3` is a third one by position that has no parameter of its own."""
    labels = [*parameters, *[f'#{number + 1}' for number in range(len(parameters), len(args))]]
    return {**dict(zip(labels, args, strict=False)), **kwargs}


def host_function(function: 'AnyFunction | HostFunction') -> HostFunction:
    """Make a `HostFunction` of a function, method or callable object."""
    if isinstance(function, HostFunction):
        return function
    describe = getattr(type(function), '__host_function__', None)
    if describe is not None:  # as `Tool` has it
        return describe(function)
    if not callable(function) or isinstance(function, type):
        msg = f'tools must be functions, not {function!r:.100}'
        raise TypeError(msg)
    name = getattr(function, '__name__', type(function).__name__)
    if not name.isidentifier() or keyword.iskeyword(name):
        msg = f'{name!r} cannot be the name of a tool: give the function a name (def …), not a lambda'
        raise SandboxError(msg)
    parameters, text = _signature(function)
    doc = inspect.getdoc(function)
    return HostFunction(
        name=name, call=function, is_async=is_async(function), parameters=parameters, signature=text, doc=doc
    )


def without_partial(function: object) -> object:
    """The function of a `partial`, or of one inside another."""
    while isinstance(function, functools.partial):
        function = cast('functools.partial[object]', function).func
    return function


def is_async(function: object) -> bool:
    """Whether calling it returns a coroutine. Understands objects with an `async def __call__`, and `partial`."""
    function = without_partial(function)
    method: object = getattr(type(function), '__call__', None)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(method)


def host_functions(functions: Iterable['AnyFunction | HostFunction']) -> dict[str, HostFunction]:
    """The tools of a sandbox by name. Raises `SandboxError` for duplicate names."""
    tools: dict[str, HostFunction] = {}
    given = cast('object', functions)
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping):
        msg = f'tools must be a list of functions, not {functions!r:.100}'
        raise TypeError(msg)
    for function in functions:
        tool = host_function(function)
        if tool.name in _TAKEN:
            msg = f'{tool.name!r} cannot be the name of a tool: Python or the sandbox uses it; rename it'
            raise SandboxError(msg)
        if tool.name in tools:
            msg = f'two tools have the name {tool.name!r}; rename one'
            raise SandboxError(msg)
        tools[tool.name] = tool
    return tools


def _signature(function: AnyFunction) -> tuple[tuple[str, ...], str]:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C have none
        return (), '(…)'
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = tuple(name for name, parameter in signature.parameters.items() if parameter.kind in positional)
    return names, str(signature)
