"""Replies as JSON, for the response cache and for recordings that `ScriptedModel` replays."""

import json
from collections.abc import Mapping
from dataclasses import fields

from habilis.core.codec import Json
from habilis.core.dataclass_codec import DataclassCodec
from habilis.models.contract import Reply

_CODEC = DataclassCodec(Reply)
_FIELDS = frozenset(field.name for field in fields(Reply))


def reply_to_json(reply: Reply) -> dict[str, Json]:
    """The reply as JSON types. Lone surrogates, which a file in UTF-8 cannot hold, become `?`."""
    text = json.dumps(_CODEC.to_dict(reply), ensure_ascii=False).encode('utf-8', 'replace')
    return json.loads(text)


def reply_from_json(item: Json) -> Reply:
    """The reply that `reply_to_json` was given; text alone is a reply too. Raises `ValueError` with what is wrong.

    Unknown fields are errors here: people write these files by hand, and make typing errors.
    """
    if isinstance(item, str):
        return Reply(text=item)
    if not isinstance(item, Mapping):
        msg = f'expected a string or an object, not {type(item).__name__}'
        raise ValueError(msg)
    if unknown := sorted(item.keys() - _FIELDS):
        msg = f'unknown field {unknown[0]!r}; a reply has {", ".join(sorted(_FIELDS))}'
        raise ValueError(msg)
    return _CODEC.from_dict(item)
