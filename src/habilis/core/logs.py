"""Logging, with redaction of secrets.

Every room logs to `habilis.<room>`. Nothing is printed unless the program adds a handler; `LOG_LEVEL` sets the level. A
handler on the `habilis` logger removes secrets from each record before other handlers see it.
"""

import logging
import sys
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from habilis.core.errors import SettingsError
from habilis.core.secrets import redact
from habilis.core.similar_names import similar_names

ROOT = 'habilis'
ROOMS = ('core', 'journal', 'models', 'sandbox', 'tools', 'memory', 'agent', 'forge', 'flows', 'server', 'cli')
"""Rooms; each has a logger such as `habilis.models`."""

LEVELS = {
    'debug': logging.DEBUG,
    'info': logging.INFO,
    'warning': logging.WARNING,
    'error': logging.ERROR,
    'critical': logging.CRITICAL,
}
_LEVEL_ALIASES = {'warn': 'warning', 'fatal': 'critical'}


class Verbosity(Protocol):
    """Log settings for `configure_logging`. `Settings` implements it."""

    @property
    def log_level(self) -> str:
        """Level, in the format of `parse_levels`."""
        ...

    @property
    def debug(self) -> bool:
        """Whether to log everything."""
        ...


class Redaction(logging.Filter):
    """Removes secrets from message, traceback and stack of each record."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record in place, so that later handlers see no secrets either."""
        record.msg = redact(_message(record))
        record.args = None
        if record.exc_info:
            record.exc_text = record.exc_text or logging.Formatter().formatException(record.exc_info)
            record.exc_info = None  # else it would be formatted again, with its secrets
        if record.exc_text:
            record.exc_text = redact(record.exc_text)
        if record.stack_info:
            record.stack_info = redact(record.stack_info)
        return True


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):  # an invalid format; the arguments must be redacted too
        return f'{record.msg} {record.args}'


class QuietHandler(logging.Handler):
    """Prints nothing; redacts records for the handlers of parent loggers."""

    def handle(self, record: logging.LogRecord) -> bool:
        """Redact the record."""
        return Redaction().filter(record)


def parse_levels(text: str) -> dict[str, int]:
    """Parse `info`, `models=debug,agent=info` or `warning,models=debug` to levels by room; '' is for all rooms."""
    levels: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(','))):
        room, equals, level = part.rpartition('=')
        if equals and room.strip().partition('.')[0] not in ROOMS:
            raise SettingsError(_unknown_room(room.strip()))
        levels[room.strip()] = _level(level.strip())
    return levels


def _level(name: str) -> int:
    lower = name.lower()
    found = LEVELS.get(_LEVEL_ALIASES.get(lower, lower))
    if found is None:
        msg = f'unknown log level {name!r}; use one of {", ".join(LEVELS)}'
        raise SettingsError(msg)
    return found


def _unknown_room(room: str) -> str:
    near = similar_names(room, ROOMS, n=1)
    advice = f'did you mean {near[0]}?' if near else f'use one of {", ".join(ROOMS)}'
    return f'unknown room {room!r} in log level; {advice}'


def configure_logging(levels: 'Verbosity | str | Mapping[str, str] | None' = None) -> None:
    """Set log levels from settings, from text such as `models=debug`, or from a mapping of rooms to levels.

    Replaces earlier levels. Records go to the handlers of the program; there are none by default.
    """
    by_room = {'': logging.WARNING} | _levels_by_room(levels)
    root = logging.getLogger(ROOT)
    for name in list(logging.Logger.manager.loggerDict):
        if name.startswith(f'{ROOT}.'):
            logging.getLogger(name).setLevel(logging.NOTSET)
    root.setLevel(by_room.pop(''))
    for room, level in by_room.items():
        logging.getLogger(f'{ROOT}.{room}').setLevel(level)


def _levels_by_room(levels: 'Verbosity | str | Mapping[str, str] | None') -> dict[str, int]:
    if levels is None:
        return {}
    if isinstance(levels, str):
        return parse_levels(levels)
    if isinstance(levels, Mapping):
        return parse_levels(','.join(f'{room}={level}' if room else level for room, level in levels.items()))
    return {'': logging.DEBUG} if levels.debug else parse_levels(levels.log_level)


_SETTINGS_LOGGER = 'habilis.core.settings_sources'


class TerminalHandler(logging.Handler):
    """Writes each record to stderr on a separate line.

    Records are held back while other output has an unfinished line there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.has_open_line: Callable[[], bool] = lambda: False
        """Returns whether there is an unfinished line. Call `flush` when it is finished."""

        self._pending: list[str] = []
        self._reported: set[str] = set()
        self.addFilter(Redaction())

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record; warnings without time and level."""
        text = self.format(record)
        if record.levelno < logging.WARNING:
            clock = time.strftime('%H:%M:%S', time.localtime(record.created))
            text = f'{clock} {record.levelname.lower()} {record.name}: {text}'
        else:
            text = f'{ROOT}: {text}'
        if record.name == _SETTINGS_LOGGER:  # one command may read them several times
            if text in self._reported:
                return
            self._reported.add(text)
        self._pending.append(text)
        self.flush()

    def flush(self) -> None:
        """Print the records held back."""
        if self._pending and not self.has_open_line():
            lines, self._pending = self._pending, []
            print(*lines, sep='\n', file=sys.stderr, flush=True)


def log_to_terminal() -> TerminalHandler:
    """Print log records on stderr. For the command line only."""
    root = logging.getLogger(ROOT)
    for handler in root.handlers:
        if isinstance(handler, TerminalHandler):
            return handler
    handler = TerminalHandler()
    root.addHandler(handler)
    return handler


def _install_quiet_handler() -> None:
    root = logging.getLogger(ROOT)
    if not any(isinstance(handler, QuietHandler) for handler in root.handlers):
        root.addHandler(QuietHandler())
        root.setLevel(logging.WARNING)


_install_quiet_handler()
