"""The channel of a running tool: log lines, events and memory of the run."""

import asyncio
import contextvars
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from habilis.sandbox import Sandbox
from habilis.sandbox.contract import Display
from habilis.tools.contract import GateCall
from habilis.tools.events import Emit, ToolEvent, ToolLogged, ToolProgress

LOGGER = logging.getLogger('habilis.tools')
MAX_LINES = 1000
"""Maximum number of log lines of a call; later lines are dropped, and the last one says so."""

MAX_DISPLAYS = 50
"""Maximum number of pictures that the tools of a cell display; later ones are dropped."""

PROGRESS_SECONDS = 0.1
"""Minimum time between two events about the progress of a call; the last, with `done` equal to `total`, is not dropped.
"""

MakeEvent = Callable[[GateCall], ToolEvent]
"""Builds an event from the current call."""


@dataclass(kw_only=True)
class ToolChannel:
    """What a running tool can reach of its toolbox."""

    emit: Callable[[MakeEvent], None]

    lines: list[str] = field(default_factory=list[str])
    memory: dict[object, object] = field(default_factory=dict[object, object])
    """What tools store for the duration of a run, each under its own key."""

    displays: list[Display] = field(default_factory=list[Display])
    """What tools display in the cell that calls them."""

    sandbox: Sandbox | None = None
    """The sandbox of the run."""

    reported_at: float | None = None
    """When the tool last reported its progress."""

    path: str = ''
    """Path of the record of the call, or of the question about it; empty if it has none."""

    at: float | None = None
    """When the call started, by that record."""

    seconds: float = 0.0
    """How long it took, by that record; 0 if it has not ended there."""

    def log(self, text: object) -> None:
        """Add a line to the record of the call."""
        if len(self.lines) > MAX_LINES:
            return
        line = str(text) if len(self.lines) < MAX_LINES else f'(more than {MAX_LINES:,} lines: the rest is dropped)'
        self.lines.append(line)
        self.emit(lambda call: ToolLogged(call=call, line=line))

    def report(self, done: float, total: float | None, message: str) -> None:
        """Emit how far the call is."""
        now = time.monotonic()
        if self.reported_at is None or now - self.reported_at >= PROGRESS_SECONDS or done == total:
            self.reported_at = now
            self.emit(lambda call: ToolProgress(call=call, done=done, total=total, message=message))


_channel: contextvars.ContextVar[ToolChannel | None] = contextvars.ContextVar('habilis_tool_channel', default=None)


def log(text: object) -> None:
    """Add a line to the record of the running tool; outside of a tool, log to `habilis.tools`."""
    channel = _channel.get()
    if channel is None:
        LOGGER.info('%s', text)
    else:
        channel.log(text)


def display(shown: Display) -> None:
    """Display something in the cell that calls the running tool. Does nothing outside of a run."""
    channel = _channel.get()
    if channel is not None and len(channel.displays) < MAX_DISPLAYS:
        channel.displays.append(shown)


def current_channel() -> ToolChannel | None:
    """The channel of the running tool; None outside of one."""
    return _channel.get()


def lines_now() -> list[str]:
    """The log lines of the running tool: the list itself, to which the lines of a replayed call are added."""
    channel = _channel.get()
    return [] if channel is None else channel.lines


def emit(make: MakeEvent) -> None:
    """Emit an event from a tool. Does nothing without a toolbox."""
    channel = _channel.get()
    if channel is not None:
        channel.emit(make)


def memory() -> dict[object, object] | None:
    """The memory of the run that calls the running tool; None outside of a run."""
    channel = _channel.get()
    return None if channel is None else channel.memory


def sandbox() -> Sandbox | None:
    """The sandbox of the run that calls the running tool; None outside of a run, or if it has none."""
    channel = _channel.get()
    return None if channel is None else channel.sandbox


def open_channel(channel: ToolChannel) -> contextvars.Token[ToolChannel | None]:
    """Set the channel of the running tool, until `close_channel`."""
    return _channel.set(channel)


def close_channel(token: contextvars.Token[ToolChannel | None]) -> None:
    """Restore the previous channel."""
    _channel.reset(token)


class LoopEmit:
    """Emits events on an event loop, from any thread."""

    def __init__(self, emit: Emit | None) -> None:
        self._emit = emit
        self.loop: asyncio.AbstractEventLoop | None = None
        self.is_heard = emit is not None

    def __call__(self, event: ToolEvent) -> None:
        """Emit an event."""
        if self._emit is None:
            return
        loop = self.loop
        if loop is None or loop.is_closed() or asyncio._get_running_loop() is loop:  # pyright: ignore[reportPrivateUsage]
            self._send(self._emit, event)
        else:
            loop.call_soon_threadsafe(self._send, self._emit, event)

    @staticmethod
    def _send(emit: Emit, event: ToolEvent) -> None:
        try:
            emit(event)
        except Exception:
            LOGGER.exception('a listener failed on the event %s', event.kind)
