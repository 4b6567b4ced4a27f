"""Leaves out of an answer what the host would refuse because of its size, and says so."""

from __future__ import annotations

from habilis.core.codec import MAX_PARTS, CodecError, Json, check_size, dump, dump_with
from habilis.sandbox.guest.tracebacks import describe

_SMALL = MAX_PARTS // 4


def encode_answer(answer: dict[str, Json], long: str) -> str:
    """Encode the answer of a cell. A value that is too large is left out: its `text` has the start of it."""
    text = dump_with(answer, long)
    if len(text) < _SMALL or _objection({name: part for name, part in answer.items() if name != long}) is None:
        return text
    small = {name: part for name, part in answer.items() if name not in {'value', 'names'}}
    if reason := _objection({'displays': small.get('displays')}):
        del small['displays']
        small['error'] = describe(ValueError(f'what the cell displays {reason}'), 'exception')
    return dump_with(small, long)


def leave_out_large(values: dict[str, Json], missing: dict[str, Json]) -> None:
    """Move the largest variables to those that are missing, until the others fit into one answer."""
    while values and (reason := _objection(values)):
        largest = max(values, key=lambda name: len(dump(values[name])))
        missing[largest] = reason if len(values) == 1 else f'is too large to be sent with the others, which {reason}'
        del values[largest]


def _objection(message: dict[str, Json]) -> str | None:
    try:
        check_size(dump(message))
    except CodecError as error:
        return str(error)
    return None
