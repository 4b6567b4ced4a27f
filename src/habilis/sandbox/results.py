"""Parses the guest's answers into results. The guest is not trusted: what is malformed raises `Malformed`."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from habilis.core.codec import CodecError, Json, NotPlain, pack, unpack
from habilis.core.errors import SandboxError
from habilis.sandbox.cell_host import CellHost
from habilis.sandbox.contract import Cell, CellError, Display, ErrorKind, Variable
from habilis.sandbox.snapshot import Checkpoint

MAX_DISPLAYS = 1000
_KINDS_FROM_GUEST: frozenset[str] = frozenset({'exception', 'syntax', 'exit', 'policy', 'memory', 'output', 'calls'})
_LIMIT_MESSAGES: dict[str, str] = {
    'time': 'the cell took longer than its {limit:g} s',
    'memory': 'the cell needed more memory than its limit',
    'output': 'the cell printed more than its limit',
    'calls': 'the cell called more tools than its limit',
    'cancelled': 'the cell was cancelled',
}


class Malformed(CodecError):
    """An answer that the kernel never gives."""


def cell_result(answer: dict[str, Json], host: CellHost) -> Cell:
    """The result of a cell whose interpreter is still running."""
    error = _parse_error(answer.get('error'))
    if host.ended and (error is None or error.kind != host.ended):
        error = _limit_error(host.ended, host.limit)
    text = answer.get('text')
    if text is not None and not isinstance(text, str):
        raise Malformed('text')
    return Cell(
        value=unpack(answer.get('value')),
        seconds=host.seconds(),
        text=text,
        stdout=host.output('stdout'),
        stderr=host.output('stderr'),
        error=error,
        calls=tuple(host.calls),
        displays=_parse_displays(answer['displays']) if 'displays' in answer else (),
    )


def cell_of_dead_guest(host: CellHost, kind: ErrorKind, cause: Exception, limit: float) -> Cell:
    """The result of a cell whose interpreter has ended."""
    error = (
        _limit_error(kind, limit)
        if kind in _LIMIT_MESSAGES
        else CellError(kind=kind, type=_TYPES[kind], message=str(cause))
    )
    out, err = host.output('stdout'), host.output('stderr')
    return Cell(stdout=out, stderr=err, error=error, calls=tuple(host.calls), seconds=host.seconds())


def rolled_back_cell(cell: Cell, lost: tuple[str, ...], *, kept: bool) -> Cell:
    """The result of a cell after which the interpreter was replaced, with the variables that were lost."""
    error = cell.error
    if error is not None and not kept:
        error = replace(error, message=f'{error.message}; its variables are lost (checkpoints=False)')
    return replace(cell, error=error, lost=lost)


_TYPES: dict[str, str] = {'exit': 'SystemExit', 'stack': 'RecursionError', 'broken': 'SandboxBroken'}
_LIMIT_TYPES: dict[str, str] = {'time': 'TimeoutError', 'memory': 'MemoryError', 'cancelled': 'Cancelled'}


def _limit_error(kind: ErrorKind, limit: float) -> CellError:
    message = _LIMIT_MESSAGES[kind].format(limit=limit)
    return CellError(kind=kind, type=_LIMIT_TYPES.get(kind, 'LimitReached'), message=message)


def _parse_error(data: Json) -> CellError | None:
    if data is None:
        return None
    kind = data.get('kind') if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(kind, str) or kind not in _KINDS_FROM_GUEST:
        raise Malformed('error')
    line = data.get('line')
    return CellError(
        kind=cast('ErrorKind', kind),
        type=str(data.get('type', ''))[:200],
        message=str(data.get('message', ''))[:10_000],
        traceback=str(data.get('traceback', ''))[:50_000],
        line=line if isinstance(line, int) else None,
    )


def _parse_displays(data: Json) -> tuple[Display, ...]:
    if not isinstance(data, list):
        raise Malformed('displays')
    shown: list[Display] = []
    for item in data[:MAX_DISPLAYS]:
        if not (isinstance(item, list) and len(item) == 2 and all(isinstance(part, str) for part in item)):
            raise Malformed('displays')
        mime, text = cast('tuple[str, str]', tuple(item))
        binary = mime.startswith('image/') and mime != 'image/svg+xml'
        try:
            shown.append(Display(mime=mime, data=base64.b64decode(text, validate=True) if binary else text))
        except (binascii.Error, ValueError):
            raise Malformed('displays') from None
    return tuple(shown)


def parse_checkpoint(answer: dict[str, Json], cells: int) -> Checkpoint:
    """The saved variables in an answer."""
    state, python, lost = answer.get('state'), answer.get('python'), answer.get('lost', [])
    if not (isinstance(state, str) and isinstance(python, str) and isinstance(lost, list)):
        raise Malformed('state')
    return Checkpoint(state=state, python=python, cells=cells, lost=tuple(str(name) for name in lost))


def parse_descriptions(answer: Json) -> dict[str, Variable]:
    """The descriptions of variables in an answer."""
    found: dict[str, Variable] = {}
    if not isinstance(answer, dict):
        raise Malformed('names')
    for name, parts in answer.items():
        if not (isinstance(parts, list) and len(parts) == 3):
            raise Malformed('names')
        kind, size, text = (str(part)[:100] for part in parts)
        found[name] = Variable(name=name, type=kind, size=size, text=text)
    return found


def pack_variables(variables: Mapping[str, object]) -> dict[str, Json]:
    """Encode variables for the guest; the error names the one that is not plain data."""
    packed: dict[str, Json] = {}
    for name, value in variables.items():
        if not name.isidentifier():
            msg = f'{name!r} is not a valid variable name'
            raise SandboxError(msg)
        try:
            packed[name] = pack(value)
        except NotPlain as error:
            msg = f'the variable {name!r} cannot go into the sandbox: {error}'
            raise SandboxError(msg) from None
    return packed


def parse_variables(answer: dict[str, Json], wanted: tuple[str, ...]) -> dict[str, object]:
    """The values of variables in an answer."""
    values, missing = answer.get('values'), answer.get('missing')
    if not isinstance(values, dict) or not isinstance(missing, dict):
        raise Malformed('variables')
    if wanted and missing:
        msg = '; '.join(f'{name} {reason}' for name, reason in missing.items())
        raise SandboxError(msg)
    return {name: unpack(value) for name, value in values.items()}
