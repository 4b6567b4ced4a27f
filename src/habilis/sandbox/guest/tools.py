"""Host tools inside the sandbox: functions or coroutine functions with name, signature and docstring."""

import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from habilis.sandbox.guest.bridge import Bridge, pack_arguments
from habilis.sandbox.guest.host_selector import HostSelector

if TYPE_CHECKING:
    from habilis.sandbox.guest.messages import ToolDescription


class HostTool:
    """A function that calls the host. It is saved by name, so an alias of a tool survives a snapshot."""

    def __init__(self, name: str, call: Callable[..., object], description: 'ToolDescription') -> None:
        self.__name__ = self.__qualname__ = name
        self.__doc__ = description.get('doc')
        self._signature = description.get('signature') or '(…)'
        self._call = call
        self.is_reserved = bool(description.get('is_reserved'))
        if description.get('is_async') and sys.version_info >= (3, 12):
            inspect.markcoroutinefunction(self)

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Call the tool on the host."""
        return self._call(*args, **kwargs)

    def __repr__(self) -> str:
        return f'<tool {self.__name__}{self._signature}>'

    @property
    def __signature__(self) -> inspect.Signature:
        """For `inspect.signature`. Types that are not known inside stay text."""
        made: dict[str, Any] = {}
        try:
            exec(f'from __future__ import annotations\ndef tool{self._signature}: ...', made)
        except (SyntaxError, NameError) as error:  # a default that cannot be written as code, or no signature at all
            raise AttributeError(str(error)) from None
        try:
            return inspect.signature(made['tool'], eval_str=True)
        except Exception:
            return inspect.signature(made['tool'])


class Tools:
    """`tools.NAME` in cells: every tool, also one whose name a variable hides."""

    def __init__(self, tools: dict[str, HostTool]) -> None:
        self.__dict__ = tools

    def __getattr__(self, name: str) -> HostTool:
        msg = f'there is no tool {name!r}; there are: {", ".join(self.__dict__) or "none"}'
        raise AttributeError(msg)

    def __repr__(self) -> str:
        return f'<tools {", ".join(self.__dict__) or "none"}>'


def make_tool(bridge: Bridge, selector: HostSelector, description: 'ToolDescription') -> HostTool:
    """Create a tool from the description that the host sent."""
    name = description['name']
    names = description.get('parameters') or []

    def call(*args: object, **kwargs: object) -> object:
        result = bridge.call(name, pack_arguments(name, names, args, kwargs))
        if description.get('ends_cell'):
            raise SystemExit
        return result

    def call_later(*args: object, **kwargs: object) -> object:
        coroutine = selector.call(name, pack_arguments(name, names, args, kwargs))
        coroutine.__name__ = coroutine.__qualname__ = name  # shown if the `await` is forgotten
        return coroutine

    return HostTool(name, call_later if description.get('is_async') else call, description)
