"""The functions of a toolbox, called as a sandbox calls them."""

import asyncio
from collections.abc import Callable
from typing import Any

from habilis.sandbox.host.functions import HostFunction
from habilis.tools import Toolbox


def function(box: Toolbox, name: str) -> HostFunction:
    """One of them."""
    return next(made for made in box.functions() if made.name == name)


async def on_a_thread(call: Callable[..., Any], *args: object, **kwargs: object) -> Any:
    """As a sandbox calls plain functions: from a thread without an event loop."""
    return await asyncio.to_thread(call, *args, **kwargs)
