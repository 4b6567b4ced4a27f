"""Images and files in the journal: their data is attached to the first record of a run, by digest."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from habilis.agent.durable.records import FileRecord
from habilis.models.contract import Message
from habilis.models.files import File, Image

_PREFIX = 'file '
"""Prefix of the name of an attached file. Snapshots are attached by the name of their sandbox."""


def attachments(files: Iterable[File], messages: Sequence[Message]) -> dict[str, bytes]:
    """What is attached to a record for these files, and for the images of these messages."""
    found = [*files, *(image for message in messages for image in message.images)]
    return {f'{_PREFIX}{file.digest}': file.data for file in found if file.data}


def split_attached(attached: Mapping[str, bytes]) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The snapshots by sandbox, and the data of the files by digest."""
    snapshots = {name: data for name, data in attached.items() if not name.startswith(_PREFIX)}
    data = {name.removeprefix(_PREFIX): found for name, found in attached.items() if name.startswith(_PREFIX)}
    return snapshots, data


def to_records(files: Iterable[File], *, is_earlier: bool) -> tuple[FileRecord, ...]:
    """The files as the inputs of a run name them."""
    return tuple(
        FileRecord(
            name=file.name,
            media_type=file.media_type,
            digest=file.digest,
            is_image=isinstance(file, Image),
            is_earlier=is_earlier,
        )
        for file in files
    )


def from_records(records: Iterable[FileRecord], data: Mapping[str, bytes]) -> tuple[File, ...]:
    """The files that were recorded. One whose data is damaged is left out."""
    return tuple(
        (Image if record.is_image else File).recorded(
            name=record.name, media_type=record.media_type, digest=record.digest, data=data[record.digest]
        )
        for record in records
        if record.digest in data
    )


def with_data(messages: Sequence[Message], data: Mapping[str, bytes]) -> tuple[Message, ...]:
    """Messages of a record with the data of their images. An image whose data is damaged is left out."""
    return tuple(
        replace(
            message,
            images=tuple(
                image.with_data(data[image.digest]) if not image.data else image
                for image in message.images
                if image.data or image.digest in data
            ),
        )
        if message.images
        else message
        for message in messages
    )


def data_of(files: Iterable[File], messages: Sequence[Message] = ()) -> dict[str, bytes]:
    """The data of these files and images by digest."""
    return split_attached(attachments(files, messages))[1]
