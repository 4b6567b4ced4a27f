"""Lines: a record comes back as it was written, and a damaged one is named."""

import math
import zlib
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.core.codec import Json, dump
from habilis.core.errors import CorruptRecord
from habilis.journal.contract import SCHEMA, Kind, Record, RunInfo, Status
from habilis.journal.encoding import (
    check_blob,
    decode_info,
    decode_record,
    digest_of,
    encode_info,
    encode_record,
    select_runs,
)
from tests.cases import each_case
from tests.core.plain import any_text

times = st.floats(0, 2e9).map(lambda at: round(at, 6))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)
records = st.builds(
    Record,
    seq=st.integers(1, 10**9),
    path=any_text,
    kind=st.sampled_from(get_args(Kind)),
    key=any_text,
    value=json_values,
    attached=st.dictionaries(any_text, any_text, max_size=2),
    at=times,
)
infos = st.builds(
    RunInfo,
    run=any_text.filter(bool),
    status=st.sampled_from(get_args(Status)),
    kind=st.sampled_from(['agent', 'flow']),
    name=any_text,
    title=any_text,
    user=any_text,
    session=any_text,
    parent=any_text,
    error=any_text,
    created=times,
    updated=times,
)
LINE = encode_record(Record(seq=7, path='a#1', kind='done', key='k', value={'p': [1, 'x']}, at=1.5))


def _signed(fields: Json) -> str:
    text = fields if isinstance(fields, str) else dump(fields)
    return f'{zlib.crc32(text.encode()):08x} {text}'


# Records --------------------------------------------------------------------------------------------------------------


@given(records)
def test_every_record_comes_back_from_its_line(record: Record) -> None:
    line = encode_record(record)
    assert line.isascii()
    assert len(line.splitlines()) == 1
    assert decode_record(line, run='r', seq=record.seq) == record


@given(records, any_text)
def test_a_record_whose_value_is_a_blob_has_none_in_its_line(record: Record, blob: str) -> None:
    record = replace(record, blob=blob or 'x')
    assert decode_record(encode_record(record), run='r', seq=record.seq) == replace(record, value=None)


@given(records, st.data())
def test_a_changed_letter_is_noticed(record: Record, data: st.DataObject) -> None:
    line = encode_record(record)
    place = data.draw(st.integers(0, len(line) - 1))
    other = data.draw(st.characters(max_codepoint=255).filter(lambda letter: letter != line[place]))
    with pytest.raises(CorruptRecord):
        decode_record(line[:place] + other + line[place + 1 :], run='r', seq=record.seq)


def test_every_byte_of_a_line_is_watched() -> None:
    for place in range(len(LINE)):
        for other in range(256):
            changed = LINE[:place] + chr(other) + LINE[place + 1 :]
            if changed != LINE:
                with pytest.raises(CorruptRecord, match='record 7 of r'):
                    decode_record(changed, run='r', seq=7)


@given(st.integers(0, len(LINE) - 1))
def test_a_torn_line_is_noticed(length: int) -> None:
    with pytest.raises(CorruptRecord):
        decode_record(LINE[:length], run='r', seq=7)


def test_a_damaged_record_is_named_with_a_way_on() -> None:
    with pytest.raises(CorruptRecord, match=r'record 7 of run-9 is damaged: .* habilis runs fork run-9 --before 7'):
        decode_record(LINE + 'x', run='run-9', seq=7)


def test_a_record_in_the_place_of_another_is_noticed() -> None:
    with pytest.raises(CorruptRecord, match='its number is 7'):
        decode_record(LINE, run='r', seq=8)


def test_a_record_of_a_newer_version_says_so() -> None:
    line = _signed({'v': SCHEMA + 1, 'n': 1, 'p': '', 'k': 'done', 't': 0, 'new': True})
    with pytest.raises(CorruptRecord, match=f'newer Habilis .format {SCHEMA + 1}, this one reads {SCHEMA}'):
        decode_record(line, run='r', seq=1)


FINE: dict[str, Json] = {'v': 1, 'n': 1, 'p': 'a', 'k': 'done', 't': 0}
NONSENSE: list[Json] = [None, [], {}]
MORE_NONSENSE: list[Json] = ['x', 1, [1], {'x': 1}, {'x': None}]


@each_case(
    'fields',
    [
        '',
        'x',
        'null',
        '[]',
        '3',
        '"text"',
        '{}',
        '[' * 10_000,
        '{"v":1,"n":1,"p":"a","k":"done","t":0,"d":NaN}',
        '{"v":1,"n":1,"p":"a","k":"done","t":0,"d":[-Infinity]}',
        '{"v":1,"n":1,"p":"a","k":"done","t":1e999}',
        f'{{"v":1,"n":1,"p":"a","k":"done","t":{10**400}}}',
        f'{{"v":1,"n":1,"p":"a","k":"done","t":{"1" * 5000}}}',
        *(FINE | {name: value} for name in 'vnpkt' for value in NONSENSE),
        *(FINE | {name: 'x'} for name in 'vnkt'),
        *(FINE | {name: value} for name in 'fb' for value in [*NONSENSE, 1]),
        *(FINE | {'a': value} for value in MORE_NONSENSE),
    ],
)
def test_nonsense_with_a_good_checksum_is_no_record(fields: Json) -> None:
    with pytest.raises(CorruptRecord):
        decode_record(_signed(fields), run='r', seq=1)


@given(st.text())
def test_any_text_is_a_record_or_refused(text: str) -> None:
    with pytest.raises(CorruptRecord):
        decode_record(text, run='r', seq=1)


@given(json_values)
def test_any_json_with_a_good_checksum_is_a_record_or_refused(fields: Json) -> None:
    with pytest.raises(CorruptRecord):
        decode_record(_signed(dump(fields)), run='r', seq=1)


# Descriptions of runs -------------------------------------------------------------------------------------------------


@given(infos)
def test_every_description_of_a_run_comes_back(info: RunInfo) -> None:
    text = encode_info(info)
    assert text.isascii()
    assert decode_info(text) == info


def test_a_description_of_a_newer_version_says_so() -> None:
    text = encode_info(RunInfo(run='r')).replace(f'"v":{SCHEMA}', f'"v":{SCHEMA + 1}')
    with pytest.raises(CorruptRecord, match=f'newer Habilis .format {SCHEMA + 1}'):
        decode_info(text)


@each_case(
    'text',
    [
        '',
        '{}',
        '[]',
        'null',
        '{"v":1,"run":"r","kind":"agent","status":"asleep","created":0,"updated":0}',
        '{"v":1,"run":"r","kind":"human","status":"done","created":0,"updated":0}',
        '{"v":1,"run":"","kind":"agent","status":"done","created":0,"updated":0}',
        '{"v":1,"run":["r"],"kind":"agent","status":"done","created":0,"updated":0}',
        '{"v":1,"run":"r","kind":"agent","status":["done"],"created":0,"updated":0}',
        '{"v":1,"run":"r","kind":"agent","status":"done","created":"x","updated":0}',
        '{"v":1,"run":"r","kind":"agent","status":"done","created":1e999,"updated":0}',
        '{"v":1,"run":"r","kind":"agent","status":"done","created":NaN,"updated":0}',
        '{"v":1,"run":"r","kind":"agent","status":"done","created":0}',
        '{"v":"x","run":"r","kind":"agent","status":"done","created":0,"updated":0}',
        f'{{"v":1,"run":"r","kind":"agent","status":"done","created":{10**400},"updated":0}}',
    ],
)
def test_a_damaged_description_is_refused(text: str) -> None:
    with pytest.raises(CorruptRecord):
        decode_info(text)


def test_runs_are_listed_newest_first_and_only_those_asked_for() -> None:
    runs = [
        RunInfo(run='a', user='me', session='s', status='done', created=1),
        RunInfo(run='b', user='you', session='s', status='failed', created=3),
        RunInfo(run='c', user='me', session='t', status='failed', created=2),
    ]
    assert [info.run for info in select_runs(runs)] == ['b', 'c', 'a']
    assert [info.run for info in select_runs(runs, user='me')] == ['c', 'a']
    assert [info.run for info in select_runs(runs, session='s')] == ['b', 'a']
    assert [info.run for info in select_runs(runs, status='failed', user='me')] == ['c']
    assert select_runs(runs, user='') == []


# Blobs ----------------------------------------------------------------------------------------------------------------


@given(st.binary())
def test_a_blob_is_what_its_name_says(data: bytes) -> None:
    assert check_blob(data, digest_of(data), run='r') == data
    with pytest.raises(CorruptRecord, match='damaged'):
        check_blob(data + b'x', digest_of(data), run='r')


def test_a_missing_blob_is_named() -> None:
    with pytest.raises(CorruptRecord, match=r'r: the blob abcdef.* is missing'):
        check_blob(None, 'abcdef', run='r')


def test_times_are_kept_to_the_microsecond() -> None:
    record = Record(seq=1, path='', kind='noted', at=math.pi)
    assert decode_record(encode_record(record), run='r', seq=1).at == 3.141593
