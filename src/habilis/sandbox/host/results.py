"""Parses the guest's answers into results. The guest is not trusted: what is malformed raises `Malformed`."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from habilis.core.codec import CodecError, Json, NotPlain, pack, unpack
from habilis.core.errors import SandboxError
from habilis.core.previews import shorten
from habilis.sandbox.arguments import check
from habilis.sandbox.contract import Cell, CellError, Display, ErrorKind, Variable
from habilis.sandbox.files.protected_files import UNDONE
from habilis.sandbox.host.cell_host import CellHost
from habilis.sandbox.host.conversions import conversion
from habilis.sandbox.host.limit_texts import limit_text
from habilis.sandbox.snapshot import SavedVariables

MAX_DISPLAYS = 1000
MAX_TEXT = 1 << 20
MAX_LOST = 10_000
MAX_LINE = 1 << 31
MAX_NAME = 1000
MAX_SHOWN = 100
MAX_UNDONE = 5
_KINDS_FROM_GUEST: tuple[ErrorKind, ...] = ('exception', 'syntax', 'exit', 'code_rules', 'memory', 'output', 'calls')


class Malformed(CodecError):
    """An answer that the kernel never gives."""

    def __init__(self, field: str) -> None:
        super().__init__(f'the sandbox sent a malformed answer: {field}')


@dataclass(frozen=True, kw_only=True)
class CellAnswer:
    """What the guest answered to a cell."""

    cell: Cell
    described: dict[str, Variable] | None
    checkpoint: SavedVariables | None
    unsaved: bool


def parse_cell(answer: dict[str, Json], host: CellHost, cells: int, *, describe: bool) -> CellAnswer:
    """The result of a cell whose interpreter is still running, which ends the tools that it has left running."""
    host.close()
    return CellAnswer(
        cell=_cell(answer, host),
        described=parse_descriptions(answer['names']) if describe and 'names' in answer else None,
        checkpoint=parse_checkpoint(answer, cells) if 'state' in answer else None,
        unsaved='unsaved' in answer,
    )


def _cell(answer: dict[str, Json], host: CellHost) -> Cell:
    error = _parse_error(answer.get('error'))
    if host.ended and (error is None or error.kind != host.ended):
        error = _error_of(host.ended, host)
    elif error is not None and error.kind == 'memory':
        error = _with_memory_limit(error, _limit_reached('memory', host))
    text = answer.get('text')
    if text is not None and not (isinstance(text, str) and len(text) <= MAX_TEXT):
        raise Malformed(f'text (more than {MAX_TEXT:,} characters, or none)')
    return Cell(
        value=unpack(answer.get('value')),
        seconds=host.seconds(),
        waited=host.waited,
        text=text,
        stdout=host.output('stdout'),
        stderr=host.output('stderr'),
        error=error,
        calls=tuple(host.calls),
        displays=_parse_displays(answer['displays']) if 'displays' in answer else (),
    )


def cell_of_dead_guest(host: CellHost, kind: ErrorKind, cause: Exception, code: str, number: int) -> Cell:
    """The result of a cell whose interpreter has ended: of the code with this number."""
    host.close()
    message = str(cause)
    if kind == 'exit' and host.exit_code is not None:  # WASI itself knows only success and failure
        message = f'the code ended the interpreter with exit code {host.exit_code}'
    return Cell(
        stdout=host.output('stdout'),
        stderr=host.output('stderr'),
        error=_with_place(_error_of(kind, host, message), host.lines, code, number),
        calls=tuple(host.calls),
        seconds=host.seconds(),
        waited=host.waited,
    )


def _with_place(error: CellError, lines: tuple[int, int] | None, code: str, number: int) -> CellError:
    """The error with the place where the cell was stopped, in the form of a traceback."""
    source = code.splitlines()
    first, last = lines or (1, len(source))
    if not 0 < first <= last <= len(source) or (lines is None and last > 1):  # it has told nothing, or lied
        return error
    place = f'line {first}' if first == last else f'lines {first}-{last}'
    shown = source[first - 1].strip()[:MAX_SHOWN]
    frame = f'  File "<cell {number}>", {place}, in <module>\n    {shown}\n'
    return replace(error, traceback=f'Traceback (most recent call last):\n{frame}{error}\n', line=first)


def rolled_back_cell(cell: Cell, lost: tuple[str, ...], *, kept: bool) -> Cell:
    """The result of a cell after which the interpreter was replaced, with the variables that were lost."""
    error = cell.error
    if error is not None and not kept:
        error = _with_note(error, 'its variables are lost (checkpoints=False)')
    return replace(cell, error=error, lost=lost, rolled_back=kept)


def describe_undone(paths: Sequence[str]) -> str:
    """The error for changes of protected files, which were undone."""
    named = ', '.join(f'{path!r}' for path in paths[:MAX_UNDONE]) + (', …' if paths[MAX_UNDONE:] else '')
    return (
        f'{named} is protected, because other programs obey it, and was restored. Do without it; what was written is '
        f'beside it with the ending {UNDONE}, and the user can allow it with protect=False'
    )


def cell_with_undone(cell: Cell, paths: Sequence[str]) -> Cell:
    """The result of a cell whose changes of protected files were undone."""
    message = describe_undone(paths)
    error = cell.error or CellError(kind='exception', type='PermissionError', message='')
    return replace(cell, error=_with_note(error, message))


def _with_memory_limit(error: CellError, reached: str) -> CellError:
    """The error with the limit. Python itself raises it without a message."""
    if error.message or not error.traceback:
        return _with_note(error, reached)
    return replace(error, message=reached, traceback=f'{error.traceback.rstrip()}: {reached}\n')


def _with_note(error: CellError, note: str) -> CellError:
    message = f'{error.message}; {note}' if error.message else note
    trace = f'{error.traceback.rstrip()}\n{note}\n' if error.traceback else ''
    return replace(error, message=message, traceback=trace)


_TYPES: dict[str, str] = {
    'exit': 'SystemExit',
    'stack': 'RecursionError',
    'broken': 'SandboxBroken',
    'memory': 'MemoryError',
    'time': 'TimeoutError',
    'cancelled': 'Cancelled',
}


def _error_of(kind: ErrorKind, host: CellHost, message: str = '') -> CellError:
    """The error of a cell that was ended: the limit, or this message. That of a backend says more about memory."""
    reached = _limit_reached(kind, host)
    text = f'{message}: {reached}' if kind == 'memory' and message else reached or message
    return CellError(kind=kind, type=_TYPES.get(kind, 'LimitReached'), message=text)


def _limit_reached(kind: ErrorKind, host: CellHost) -> str:
    return limit_text(kind, host.limits, host.seconds_limit)


def _parse_error(data: Json) -> CellError | None:
    if data is None:
        return None
    said = data.get('kind') if isinstance(data, dict) else None
    kind: ErrorKind | None = next((one for one in _KINDS_FROM_GUEST if one == said), None)
    if not isinstance(data, dict) or kind is None:
        raise Malformed('error')
    line = data.get('line')
    return CellError(
        kind=kind,
        type=_text(data.get('type', ''), 200),
        message=_text(data.get('message', ''), 10_000),
        traceback=_text(data.get('traceback', ''), 50_000),
        line=line if isinstance(line, int) and 0 < line < MAX_LINE else None,
    )


def _text(value: Json, length: int) -> str:
    """Text of the guest, truncated; what should have been text is shown in short."""
    return value[:length] if isinstance(value, str) else shorten(value, min(length, MAX_SHOWN))


def _parse_displays(data: Json) -> tuple[Display, ...]:
    if not isinstance(data, list):
        raise Malformed('displays')
    shown: list[Display] = []
    for item in data[:MAX_DISPLAYS]:
        match item:
            case [str(mime), str(text)]:
                pass
            case _:
                raise Malformed('displays')
        binary = mime.startswith('image/') and mime != 'image/svg+xml'
        try:
            shown.append(Display(mime=mime, data=base64.b64decode(text, validate=True) if binary else text))
        except (binascii.Error, ValueError):
            raise Malformed('displays') from None
    return tuple(shown)


def parse_checkpoint(answer: dict[str, Json], cells: int) -> SavedVariables:
    """The saved variables in an answer."""
    state, python, lost = answer.get('state'), answer.get('python'), answer.get('lost', [])
    if not (isinstance(state, str) and isinstance(python, str) and isinstance(lost, list)):
        raise Malformed('state')
    names = tuple(_text(name, MAX_NAME) for name in lost[:MAX_LOST])
    return SavedVariables(state=state, python=python[:MAX_NAME], cells=cells, lost=names)


def parse_descriptions(answer: Json) -> dict[str, Variable]:
    """The descriptions of variables in an answer."""
    found: dict[str, Variable] = {}
    if not isinstance(answer, dict):
        raise Malformed('names')
    for name, parts in answer.items():
        if not (isinstance(parts, list) and len(parts) == 3):
            raise Malformed('names')
        kind, size, text = (_text(part, MAX_SHOWN) for part in parts)
        found[name] = Variable(name=name, type=kind, size=size, text=text)
    return found


def pack_variables(variables: Mapping[str, object]) -> dict[str, Json]:
    """Encode variables for the guest; the error names the one that is not plain data."""
    packed: dict[str, Json] = {}
    check('variables', variables, Mapping, 'a dict of plain data by name')
    for name, value in variables.items():
        check('the name of a variable', name, str, 'text')
        if not name.isidentifier():
            msg = f'{name!r} is not a valid variable name'
            raise SandboxError(msg)
        try:
            packed[name] = pack(value)
        except NotPlain as error:
            convert = conversion(value, f'{name}{error.path}')
            msg = f'the variable {name!r} cannot go into the sandbox: {error}{convert and f"; pass {convert}"}'
            raise SandboxError(msg) from None
    return packed


def parse_variables(answer: dict[str, Json], wanted: tuple[str, ...]) -> dict[str, object]:
    """The values of variables in an answer."""
    values, missing = answer.get('values'), answer.get('missing')
    if not isinstance(values, dict) or not isinstance(missing, dict):
        raise Malformed('variables')
    if wanted and missing:
        told = list(islice(missing.items(), MAX_DISPLAYS))
        raise SandboxError('; '.join(f'{name[:MAX_NAME]} {_text(reason, MAX_NAME)}' for name, reason in told))
    return {name: unpack(value) for name, value in values.items()}
