"""The log channel of a tool: what it says beside its result. The model sees the lines with the result of the cell."""

import contextvars
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from habilis.tools.contract import GateCall
from habilis.tools.events import ToolEvent, ToolLogged

LOGGER = logging.getLogger('habilis.tools')
MAX_LINES = 1000
"""Of one call; what comes after is dropped, and the last line says so."""

MakeEvent = Callable[[GateCall], ToolEvent]
"""Builds an event from the current call."""


@dataclass(kw_only=True)
class Channel:
    """What the running tool emits events and logs to."""

    emit: Callable[[MakeEvent], None]

    lines: list[str] = field(default_factory=list[str])
    memory: dict[object, object] = field(default_factory=dict[object, object])
    """What tools keep as long as the toolbox is there, which is one run; each under a key of its own."""


_channel: contextvars.ContextVar[Channel | None] = contextvars.ContextVar('habilis_tool_channel', default=None)


def log(text: object) -> None:
    """Add a line to the record of the tool that runs now. Elsewhere it goes to the logger `habilis.tools`."""
    channel = _channel.get()
    if channel is None:
        LOGGER.info('%s', text)
        return
    if len(channel.lines) > MAX_LINES:
        return
    line = str(text) if len(channel.lines) < MAX_LINES else f'(more than {MAX_LINES:,} lines: the rest is dropped)'
    channel.lines.append(line)
    channel.emit(lambda call: ToolLogged(call=call, line=line))


def lines_now() -> list[str]:
    """What the tool that runs now has logged. The list itself: a call that is not made again gets its lines here."""
    channel = _channel.get()
    return [] if channel is None else channel.lines


def emit(make: MakeEvent) -> None:
    """Emit an event from inside a tool. Does nothing outside a toolbox."""
    channel = _channel.get()
    if channel is not None:
        channel.emit(make)


def memory() -> dict[object, object] | None:
    """Of the run that calls the tool that runs now. None elsewhere."""
    channel = _channel.get()
    return None if channel is None else channel.memory


def open_channel(channel: Channel) -> contextvars.Token[Channel | None]:
    """Make this the channel of what runs next; `close_channel` ends it."""
    return _channel.set(channel)


def close_channel(token: contextvars.Token[Channel | None]) -> None:
    """Back to the channel before."""
    _channel.reset(token)
