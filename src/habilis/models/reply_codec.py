"""Replies as JSON, for the response cache and for recordings that `ScriptedModel` replays."""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import cache
from typing import TYPE_CHECKING

from habilis.core.codec import Json
from habilis.models.contract import Reply

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_FIELDS = frozenset(field.name for field in fields(Reply))


def reply_to_json(reply: Reply) -> dict[str, Json]:
    """Encode a reply as JSON types. Lone surrogates, which UTF-8 cannot encode, become `?`."""
    text = json.dumps(asdict(reply), ensure_ascii=False).encode('utf-8', 'replace')
    return json.loads(text)


def reply_from_json(item: Json) -> Reply:
    """Decode a reply; a string is its text. Raises `ValueError`."""
    if isinstance(item, str):
        return Reply(text=item)
    if not isinstance(item, Mapping):
        msg = f'expected a string or an object, not {type(item).__name__}'
        raise ValueError(msg)
    if unknown := sorted(item.keys() - _FIELDS):
        msg = f'unknown field {unknown[0]!r}; a reply has {", ".join(sorted(_FIELDS))}'
        raise ValueError(msg)
    from pydantic import ValidationError

    try:
        return _adapter().validate_python(item)
    except ValidationError as error:
        first = error.errors()[0]
        place = '.'.join(str(part) for part in first['loc'])
        msg = f'{place}: {first["msg"]}'
        raise ValueError(msg) from None


@cache
def _adapter() -> 'TypeAdapter[Reply]':
    from pydantic import TypeAdapter

    return TypeAdapter(Reply)
