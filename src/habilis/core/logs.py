"""What Habilis logs, and what it must never log.

Every room logs to `habilis.<room>`. Nothing is shown unless the program asks for it; `LOG_LEVEL` sets how much there is
to show. A handler on the root of these loggers takes keys out of each record before anyone else sees it.
"""

import logging
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Protocol

from habilis.core.errors import SettingsError

ROOT = 'habilis'
ROOMS = ('core', 'journal', 'models', 'sandbox', 'tools', 'memory', 'agent', 'forge', 'flows', 'server', 'cli')
"""Each has a logger: `habilis.models`, and so on."""

LEVELS = {
    'debug': logging.DEBUG,
    'info': logging.INFO,
    'warning': logging.WARNING,
    'error': logging.ERROR,
    'critical': logging.CRITICAL,
}
_OTHER_NAMES = {'warn': 'warning', 'fatal': 'critical'}

_SHORTEST_SECRET = 6  # anything shorter is a word, or a part of too many
_HIDDEN = '***'
_hidden: set[str] = set()

_LOOKS_SECRET = (
    re.compile(r'(?P<keep>\bBearer\s+)[^\s"\',;]+', re.IGNORECASE),
    re.compile(r'(?P<keep>\bBasic\s+)[A-Za-z0-9+/=_-]{8,}'),
    re.compile(
        r"""(?P<keep>["']?\b(?:x-)?(?:goog-)?api[-_]?key["']?\s*[:=]\s*["']?)[^\s"',;&)}\]]+""",
        re.IGNORECASE,
    ),
    re.compile(r'(?P<keep>\b\w{1,20}://[^\s/:@]*:)[^\s/@]+(?=@)'),
    re.compile(r'(?P<keep>)\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}'),
    re.compile(r'(?P<keep>)\b(?:gsk|hf|xai|ghp|gho|github_pat|xox[abprs])[-_][A-Za-z0-9_-]{16,}'),
    re.compile(r'(?P<keep>)\bAIza[A-Za-z0-9_-]{20,}'),
    re.compile(r'(?P<keep>)\b(?:AKIA|ASIA)[A-Z0-9]{12,}'),
)


class Verbosity(Protocol):
    """What `configure_logging` needs to know. `Settings` is one."""

    @property
    def log_level(self) -> str:
        """As `parse_levels` takes it."""
        ...

    @property
    def debug(self) -> bool:
        """Log everything."""
        ...


def hide(secrets: Iterable[str]) -> None:
    """Take these values out of everything that is logged from now on."""
    _hidden.update(secret for secret in secrets if len(secret) >= _SHORTEST_SECRET)


def redact(text: str) -> str:
    """The text without the values given to `hide`, and without anything that looks like a key."""
    for secret in sorted(_hidden, key=len, reverse=True):  # a long one may contain a short one
        text = text.replace(secret, _HIDDEN)
    for pattern in _LOOKS_SECRET:
        text = pattern.sub(rf'\g<keep>{_HIDDEN}', text)
    return text


class Redaction(logging.Filter):
    """Lets every record through, without its secrets: in the message, the traceback and the stack."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record in place, so that handlers after this one see no secret either."""
        record.msg = redact(_message(record))
        record.args = None
        if record.exc_info:
            record.exc_text = record.exc_text or logging.Formatter().formatException(record.exc_info)
            record.exc_info = None  # it would be formatted again, with its secrets
        if record.exc_text:
            record.exc_text = redact(record.exc_text)
        if record.stack_info:
            record.stack_info = redact(record.stack_info)
        return True


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):  # a wrong format; the arguments must not get around the filter
        return f'{record.msg} {record.args}'


class QuietHandler(logging.Handler):
    """Shows nothing, as a library should; redacts what handlers further up are about to show."""

    def handle(self, record: logging.LogRecord) -> bool:
        """Redact, and that is all."""
        return Redaction().filter(record)


def parse_levels(text: str) -> dict[str, int]:
    """Levels by room of `info`, `models=debug,agent=info` or `warning,models=debug`; the key '' is for all rooms."""
    levels: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(','))):
        room, equals, level = part.rpartition('=')
        if equals and room.strip().partition('.')[0] not in ROOMS:
            raise SettingsError(_unknown_room(room.strip()))
        levels[room.strip()] = _level(level.strip())
    return levels


def _level(name: str) -> int:
    lower = name.lower()
    found = LEVELS.get(_OTHER_NAMES.get(lower, lower))
    if found is None:
        msg = f'there is no log level {name!r}; take one of {", ".join(LEVELS)}'
        raise SettingsError(msg)
    return found


def _unknown_room(room: str) -> str:
    near = get_close_matches(room, ROOMS, n=1)
    advice = f'did you mean {near[0]}?' if near else f'take one of {", ".join(ROOMS)}'
    return f'there is no room {room!r} to set a log level for; {advice}'


def configure_logging(levels: 'Verbosity | str | Mapping[str, str] | None' = None) -> None:
    """Set how much is logged: by settings, by text such as `models=debug`, or by a mapping of rooms to levels.

    What was set before is forgotten. Records go to the handlers that the program has set up; there are none by default.
    """
    chosen = {'': logging.WARNING} | _chosen(levels)
    root = logging.getLogger(ROOT)
    for name in list(logging.Logger.manager.loggerDict):
        if name.startswith(f'{ROOT}.'):
            logging.getLogger(name).setLevel(logging.NOTSET)
    root.setLevel(chosen.pop(''))
    for room, level in chosen.items():
        logging.getLogger(f'{ROOT}.{room}').setLevel(level)


def _chosen(levels: 'Verbosity | str | Mapping[str, str] | None') -> dict[str, int]:
    if levels is None:
        return {}
    if isinstance(levels, str):
        return parse_levels(levels)
    if isinstance(levels, Mapping):
        return parse_levels(','.join(f'{room}={level}' if room else level for room, level in levels.items()))
    return {'': logging.DEBUG} if levels.debug else parse_levels(levels.log_level)


_OF_SETTINGS = 'habilis.core.sources'


class TerminalHandler(logging.Handler):
    """Writes each record to stderr on a line of its own.

    Records wait while somebody else is in the middle of a line there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.line_begun: Callable[[], bool] = lambda: False
        """Whether somebody is. They call `flush` when they have ended it."""

        self._waiting: list[str] = []
        self._told: set[str] = set()
        self.addFilter(Redaction())

    def emit(self, record: logging.LogRecord) -> None:
        """Show it; a warning as a line of the command's own."""
        text = self.format(record)
        if record.levelno < logging.WARNING:
            clock = time.strftime('%H:%M:%S', time.localtime(record.created))
            text = f'{clock} {record.levelname.lower()} {record.name}: {text}'
        else:
            text = f'{ROOT}: {text}'
        if record.name == _OF_SETTINGS:  # which one command may read several times
            if text in self._told:
                return
            self._told.add(text)
        self._waiting.append(text)
        self.flush()

    def flush(self) -> None:
        """Write what waits."""
        if self._waiting and not self.line_begun():
            lines, self._waiting = self._waiting, []
            print(*lines, sep='\n', file=sys.stderr, flush=True)


def log_to_terminal() -> TerminalHandler:
    """Show on stderr what is logged. For the command line; a library leaves this to the program."""
    root = logging.getLogger(ROOT)
    for handler in root.handlers:
        if isinstance(handler, TerminalHandler):
            return handler
    shown = TerminalHandler()
    root.addHandler(shown)
    return shown


def _be_quiet() -> None:
    root = logging.getLogger(ROOT)
    if not any(isinstance(handler, QuietHandler) for handler in root.handlers):
        root.addHandler(QuietHandler())
        root.setLevel(logging.WARNING)


_be_quiet()
