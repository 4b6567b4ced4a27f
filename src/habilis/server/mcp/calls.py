"""A tool that MCP clients call, a call of it, and the answer; independent of the SDK."""

import inspect
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from habilis.core.codec import Json
from habilis.sandbox.contract import Display
from habilis.tools.tool import AnyTool

Close = Callable[[], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class McpCall:
    """Who calls, and what the tool can tell during the call."""

    owner: str
    """The caller, by the key of its requests."""

    session: str | None
    """Id of the client's session; None where the protocol has none, and each request stands alone."""

    say: Callable[[str], None]
    """Report how far the call is, in words."""

    at_end: Callable[[Close], object]
    """Have something closed when the session of the client ends."""


@dataclass(frozen=True, kw_only=True)
class McpAnswer:
    """What a client gets."""

    text: str
    pictures: tuple[Display, ...] = ()
    data: dict[str, Json] | None = None
    """The answer for programs, where it is data."""

    is_error: bool = False


@dataclass(frozen=True, kw_only=True)
class McpTool:
    """A tool with its schema, and the function that answers a call with valid arguments."""

    tool: AnyTool
    answer: Callable[[McpCall, inspect.BoundArguments], Awaitable[McpAnswer]]
    is_read_only: bool = False
    """Whether it changes nothing outside of its sandbox."""

    is_open: bool = False
    """Whether it may reach the network."""


def answer_of_value(value: object) -> McpAnswer:
    """A result of any type: as text, and as data."""
    from pydantic_core import to_jsonable_python

    plain: Json = to_jsonable_python(value, fallback=repr, bytes_mode='base64', inf_nan_mode='strings')
    text = value if isinstance(value, str) else json.dumps(plain, ensure_ascii=False)
    return McpAnswer(text=text, data=plain if isinstance(plain, dict) else {'result': plain})
