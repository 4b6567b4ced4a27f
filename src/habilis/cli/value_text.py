"""Values, tool calls and questions as text for people."""

import datetime
from collections.abc import Mapping
from decimal import Decimal
from uuid import UUID

from habilis.agent.durable.audit import unpacked
from habilis.agent.hooks.sanitize import diff_lines, escape_controls, one_line
from habilis.core.codec import Json
from habilis.core.integers import safe_repr
from habilis.core.narrowing import fields_in, is_dict

MAX_CALL_CHARS = 200
"""Max characters of a call on one line; a longer one has a line per argument."""

MAX_ARGUMENT_CHARS = 2000
"""Max characters of an argument shown to the person who decides about the call."""

_WRITTEN_AS_TEXT = (str, Decimal, UUID, datetime.date, datetime.time, datetime.timedelta)


def value_text(value: object) -> str:
    """The value as a person writes it: text without quotes, `3.50`, `2026-01-02 03:04:00`; others as in Python."""
    return str(value) if isinstance(value, _WRITTEN_AS_TEXT) else safe_repr(value)


def arguments_text(arguments: Mapping[str, object]) -> str:
    """The arguments of a call: `name=value, …`."""
    return ', '.join(f'{name}={safe_repr(value)}' for name, value in arguments.items())


def call_lines(tool: str, arguments: Mapping[str, object], *, diff: str = '', code: str = '') -> list[str]:
    """A call for the person who decides about it: its arguments, what it would change, the code that makes it."""
    name = one_line(tool, MAX_CALL_CHARS)
    call = [f'{name}({escape_controls(arguments_text(arguments))})']
    if len(call[0]) > MAX_CALL_CHARS:
        call = [f'{name}(', *(f'  {key}={_argument(value)},' for key, value in arguments.items()), ')']
    lines = [*call, *diff_lines(diff)]
    if code.strip():
        lines += ['called by this code:', *(f'  {line}' for line in escape_controls(code.strip('\n')).splitlines())]
    return lines


def request_lines(request: Mapping[str, Json], code: str = '') -> list[str]:
    """What a recorded question is about: the call, or the details that were given with it."""
    tool, arguments = request.get('tool'), unpacked(request.get('arguments'))
    if isinstance(tool, str):
        return call_lines(tool, fields_in(arguments), diff=str(request.get('diff') or ''), code=code)
    details = unpacked(request.get('details'))
    known = details if is_dict(details) else {}
    lines = [f'{name}: {value_text(value)}' for name, value in known.items()]
    return escape_controls('\n'.join(lines)).splitlines()


def _argument(value: object) -> str:
    text = escape_controls(safe_repr(value))
    omitted = len(text) - MAX_ARGUMENT_CHARS
    return text if omitted <= 0 else f'{text[:MAX_ARGUMENT_CHARS]}… ({omitted:,} more characters)'
