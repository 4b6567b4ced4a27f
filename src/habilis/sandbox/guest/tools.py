"""Host tools as they look inside: an ordinary function, or an `async def`, with its name, signature and docstring."""

import inspect
import sys
from collections.abc import Callable
from typing import Any, cast

from habilis.core.codec import Json
from habilis.sandbox.guest.bridge import Bridge, pack_arguments
from habilis.sandbox.guest.loop import HostSelector


class HostTool:
    """Calling it calls the host. Known to the saver by name, so that an alias of a tool survives a snapshot."""

    def __init__(self, name: str, call: Callable[..., object], description: dict[str, Json]) -> None:
        self.__name__ = self.__qualname__ = name
        self.__doc__ = cast('str | None', description.get('doc'))
        self.__text_signature__ = description.get('signature')
        self._call = call
        if description.get('is_async') and sys.version_info >= (3, 12):
            inspect.markcoroutinefunction(self)

    def __call__(self, *args: Any, **kwargs: Any) -> object:
        """Call the tool on the host."""
        return self._call(*args, **kwargs)

    def __repr__(self) -> str:
        return f'<tool {self.__name__}{self.__text_signature__ or "(…)"}>'


def make_tool(bridge: Bridge, selector: HostSelector, description: dict[str, Json]) -> HostTool:
    """The tool that the host described: its name, parameters, documentation, and whether it is asynchronous."""
    name = cast('str', description['name'])
    names = cast('list[str]', description.get('parameters') or [])

    def call(*args: object, **kwargs: object) -> object:
        return bridge.call(name, pack_arguments(name, names, args, kwargs))

    def call_later(*args: object, **kwargs: object) -> object:
        return selector.call(name, pack_arguments(name, names, args, kwargs))

    return HostTool(name, call_later if description.get('is_async') else call, description)
