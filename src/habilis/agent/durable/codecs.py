"""Codecs for the journal: dataclasses by their fields, results with an output of any type."""

from dataclasses import replace
from typing import Any, Generic, TypeVar, cast

from habilis.agent.context.output import OutputType
from habilis.agent.contract import RESULT_FIELDS, Result
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


class ResultCodec(Codec[Result[Any]]):
    """Encodes results, with the output by the output type of the agent."""

    def __init__(self, output: OutputType) -> None:
        super().__init__(what='a result')
        self._output: Codec[object] = Codec(output.kind, what='the output of an agent')

    def write(self, value: Result[Any]) -> Json:
        """Encode a result. Raises `NotDurable`."""
        output = self._output.write(value.output) if value.ended == 'answer' else None
        bare = replace(value, output=None, messages=without_data(value.messages))
        return {'r': RESULT_FIELDS.encode(bare), 'o': output}

    def read(self, written: Json) -> Result[Any]:
        """Decode a result. Raises `NotDurable`."""
        result = result_without_output(written)
        if result.ended != 'answer':
            return result
        return replace(result, output=self._output.read(cast('dict[str, Json]', written).get('o')))


def result_without_output(written: Json) -> Result[Any]:
    """An encoded result whose output type is not known here; its `output` is None. Raises `NotDurable`."""
    return RESULT_FIELDS.decode(written.get('r') if isinstance(written, dict) else None)


def messages_of(written: Json) -> tuple[Message, ...]:
    """The messages of an encoded result. Raises `NotDurable`."""
    return result_without_output(written).messages
