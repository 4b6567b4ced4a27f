"""Codecs for the journal: dataclasses by their fields."""

from dataclasses import replace
from typing import Generic, TypeVar

from habilis.core.codec import Json
from habilis.core.dataclass_codec import DataclassCodec
from habilis.journal import Codec
from habilis.models.contract import Message

T = TypeVar('T')


class DataCodec(Codec[T], Generic[T]):
    """A `DataclassCodec` as a codec of the journal."""

    def __init__(self, kind: type[T], *, what: str) -> None:
        super().__init__(what=what)
        self._codec = DataclassCodec(kind)

    def write(self, value: T) -> Json:
        """Encode a value. Raises `NotDurable`."""
        return self._codec.encode(value)

    def read(self, written: Json) -> T:
        """Decode a value. Raises `NotDurable`."""
        return self._codec.decode(written)


def without_data(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Messages whose images have digests only: the record of the inputs has the data."""
    return tuple(
        replace(message, images=tuple(image.without_data() for image in message.images)) if message.images else message
        for message in messages
    )
