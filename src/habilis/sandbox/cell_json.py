"""The result of a cell as JSON, for the command line and the server."""

import dataclasses

from habilis.core.codec import Json, pack
from habilis.core.narrowing import is_tuple
from habilis.sandbox.contract import Cell


def to_json(cell: Cell) -> dict[str, Json]:
    """All fields of the cell. Values JSON has no type for become `{"$": type, "v": …}`."""
    fields = _dataclass_to_json(dataclasses.replace(cell, value=None))
    return {'ok': cell.ok, **fields, 'value': pack(cell.value)}


def _dataclass_to_json(thing: object) -> dict[str, Json]:
    assert dataclasses.is_dataclass(thing)
    return {field.name: _field_to_json(getattr(thing, field.name)) for field in dataclasses.fields(thing)}


def _field_to_json(value: object) -> Json:
    if dataclasses.is_dataclass(value):
        return _dataclass_to_json(value)
    if is_tuple(value):
        return [_field_to_json(item) for item in value]
    return pack(value)
