"""Documents of users: JSON that says what it is and which version it has."""

import json
from dataclasses import dataclass

import pytest

from habilis.core.dataclass_codec import DataclassCodec
from habilis.core.documents import DocumentFormat
from habilis.core.errors import DocumentError


@dataclass(frozen=True, kw_only=True)
class Note:
    """The content of a document."""

    text: str
    tags: tuple[str, ...] = ()
    value: object = None


FORMAT = DocumentFormat('note', 2, DataclassCodec(Note), lists=('tags',))
NOTE = Note(text='ä\ud800', tags=('a', 'b'), value=(1, b'\xff'))


def written(note: Note, indent: int | None = None) -> str:
    """The text of a document."""
    return FORMAT.write(FORMAT.fields(note), indent)


@pytest.mark.parametrize('indent', [None, 2])
def test_a_document_is_equal_after_the_round_trip(indent: int | None) -> None:
    text = written(NOTE, indent)
    assert text.isascii()
    assert FORMAT.decode(FORMAT.read(text)) == FORMAT.decode(FORMAT.read(f'\n{text}\n'.encode())) == NOTE


def test_a_document_says_what_it_is_and_has_lists_that_any_program_reads() -> None:
    document = json.loads(written(Note(text='a', tags=('b',))))
    assert document == {'habilis': 'note', 'version': 2, 'text': 'a', 'tags': ['b']}


def test_older_versions_are_read_and_unknown_fields_ignored() -> None:
    assert FORMAT.decode(FORMAT.read('{"habilis":"note","version":1,"text":"a","mood":"good"}')) == Note(text='a')


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('{"a"', 'cannot read this note: not JSON'),
        ('3', 'this JSON is no note that Habilis wrote'),
        ('{"habilis":"note","version":3}', 'version 3, and this Habilis reads versions up to 2: update Habilis'),
        ('{"habilis":"note","version":true}', 'damaged: its "version" is True'),
    ],
)
def test_other_texts_are_refused(text: str, words: str) -> None:
    with pytest.raises(DocumentError, match=words):
        FORMAT.read(text)
