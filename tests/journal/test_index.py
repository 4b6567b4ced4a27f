"""The index of records: what is known of a path, what is left to be asked for, and what no longer counts."""

from habilis.journal.contract import Kind, Record
from habilis.journal.index import Index, is_in_order, name_of, parent_of
from tests.cases import each_case


def _index(*lines: tuple[Kind, str] | tuple[Kind, str, str]) -> Index:
    return Index(_records(*lines))


def _records(*lines: tuple[Kind, str] | tuple[Kind, str, str]) -> list[Record]:
    return [
        Record(seq=seq, kind=line[0], path=line[1], key=line[2] if len(line) > 2 else '')
        for seq, line in enumerate(lines, 1)
    ]


def _voided(seq: int, *paths: str) -> Record:
    return Record(seq=seq, kind='voided', path='', value=list(paths))


@each_case(
    ('path', 'parent', 'name', 'in_order'),
    [
        ('a#1', '', 'a', True),
        ('a#1/b#12', 'a#1', 'b', True),
        ('a#1/~3', 'a#1', '', False),
        ('a#1/~3/c#1', 'a#1/~3', 'c', True),
        ('get(0f)#2', '', 'get(0f)', False),
        ('get(0f)#2/x#1', 'get(0f)#2', 'x', True),
    ],
)
def test_a_path_says_where_it_is(path: str, parent: str, name: str, in_order: bool) -> None:
    assert (parent_of(path), name_of(path), is_in_order(path)) == (parent, name, in_order)


def test_of_a_path_the_newest_record_of_each_kind_counts() -> None:
    index = _index(('opened', 'a#1'), ('asked', 'a#1'), ('answered', 'a#1'), ('failed', 'a#1'), ('done', 'a#1', 'k'))
    entry = index.find('a#1')
    assert entry is not None
    assert entry.end is not None
    assert (entry.end.kind, entry.key, entry.first) == ('done', 'k', 1)
    assert index.find('b#1') is None


def test_notes_are_no_steps() -> None:
    index = _index(('noted', ''), ('noted', 'a#1'), ('ended', ''))
    assert index.find('a#1') is None
    assert index.unreplayed_steps('') == []


def test_steps_are_left_in_the_order_they_began_until_they_are_asked_for() -> None:
    index = _index(('done', 'a#1/x#1'), ('done', 'b#1'), ('done', 'a#1'), ('done', 'a#2'), ('done', 'f(k)#1'))
    assert index.unreplayed_steps('') == ['a#1', 'b#1', 'a#2']
    assert index.unreplayed_steps('a#1') == ['a#1/x#1']
    index.mark_replayed('b#1')
    index.mark_replayed('b#1')
    index.mark_replayed('never#1')
    assert index.unreplayed_steps('') == ['a#1', 'a#2']
    assert index.first_unreplayed('') == 'a#1'
    assert index.first_unreplayed('nowhere') is None


def test_calls_and_branches_are_left_apart_from_steps() -> None:
    index = _index(('done', 'get(1)#1'), ('done', 'getter(1)#1'), ('done', '~2/a#1'), ('done', '~1/a#1'))
    assert index.unreplayed_steps('') == []
    assert index.unreplayed_calls('', 'get') == ['get(1)#1']
    assert index.unreplayed_branches('') == ['~2', '~1']
    index.mark_replayed('get(1)#1')
    index.mark_replayed('~2')
    assert index.unreplayed_calls('', 'get') == []
    assert index.unreplayed_branches('') == ['~1']


def test_new_records_are_known_and_not_left() -> None:
    index = Index()
    index.add(Record(seq=1, path='a#1', kind='done'))
    assert index.find('a#1') is not None
    assert index.unreplayed_steps('') == []


# Branches -------------------------------------------------------------------------------------------------------------


def test_a_branch_is_found_by_its_first_step() -> None:
    index = _index(('done', '~1/a#1', 'k'), ('done', '~2/a#1', 'm'), ('done', '~3/b#1', 'k'), ('done', '~4/a#1', 'm'))
    assert index.find_branch('', 'a', 'm') == '~2'
    index.mark_replayed('~2')
    assert index.find_branch('', 'a', 'm') == '~4'
    assert index.find_branch('', 'c', 'm') is None
    assert index.find_branch('', 'a', 'other') is None
    assert index.find_branch('elsewhere', 'a', 'k') is None


def test_a_branch_whose_key_is_not_known_is_second_choice() -> None:
    index = _index(('done', '~1/a#1/x#1'), ('done', '~2/a#1', 'k'))
    assert index.find_branch('', 'a', 'k') == '~2'
    index.mark_replayed('~2')
    assert index.find_branch('', 'a', 'k') == '~1'


def test_branches_are_numbered_beyond_all_there_have_ever_been() -> None:
    index = _index(('done', '~7/a#1'), ('done', 's#1/~2/a#1'))
    index.add(_voided(3, '~7/'))
    assert index.new_branch('') == '~8'
    assert index.new_branch('') == '~9'
    index.count_branch('', 20)
    assert index.new_branch('') == '~21'
    assert index.new_branch('s#1') == 's#1/~3'
    assert index.new_branch('new') == 'new/~1'


def test_a_branch_with_a_strange_name_does_no_harm() -> None:
    index = _index(('done', '~x/a#1'), ('done', '~/a#1'), ('done', '~²/a#1'), ('done', '/'), ('done', '//x'))
    assert index.new_branch('') == '~1'


# What no longer counts ------------------------------------------------------------------------------------------------


def test_a_dropped_path_is_gone_with_all_inside_and_nothing_else() -> None:
    index = _index(('done', 'a#1/x#1/y#1'), ('done', 'a#1'), ('done', 'a#10'), ('done', 'b#1/a#1'))
    index.add(_voided(5, 'a#1/'))
    assert [path for path, _ in index.inside('')] == ['a#10', 'b#1/a#1']
    assert index.unreplayed_steps('') == ['a#10', 'b#1']
    assert index.unreplayed_steps('a#1') == []


def test_a_failure_that_no_longer_counts_leaves_what_was_done_inside() -> None:
    index = _index(('opened', 'a#1', 'k'), ('done', 'a#1/x#1'), ('failed', 'a#1', 'k'), ('done', 'b#1'))
    index.add(_voided(5, 'a#1', 'a#1/x#1', 'never#1'))
    entry = index.find('a#1')
    assert entry is not None
    assert (entry.end, entry.key, entry.retried) == (None, 'k', True)
    inner = index.find('a#1/x#1')
    assert inner is not None
    assert inner.end is not None
    assert index.unreplayed_steps('') == ['a#1']
    assert index.find('b#1') is None


def test_what_came_before_a_failure_stays_and_branches_after_it_are_excused() -> None:
    index = _index(
        ('done', 's#1/before#1'),
        ('done', 's#1/~1/a#1'),
        ('failed', 's#1/x#1'),
        ('done', 's#1/~2/b#1'),
        ('done', 's#1/after#1'),
        ('failed', 's#1'),
        ('done', 't#1'),
    )
    index.add(_voided(8, 's#1/x#1'))
    assert index.unreplayed_steps('s#1') == ['s#1/before#1', 's#1/x#1']
    assert index.unreplayed_branches('s#1') == ['s#1/~1']
    assert index.find('s#1/~2/b#1') is not None
    assert index.unreplayed_steps('') == ['s#1', 't#1']


def test_reading_records_again_gives_what_there_was_when_they_were_written() -> None:
    records = _records(('failed', 'a#1'), ('done', 'b#1'), ('done', 'c#1/x#1'), ('done', 'c#1'))
    voided = [_voided(5, 'c#1/'), _voided(6, 'a#1')]
    live = Index(records)
    for record in voided:
        live.add(record)
    read = Index([*records, *voided])
    assert dict(live.inside('')) == dict(read.inside(''))
    assert live.unreplayed_steps('') == read.unreplayed_steps('') == ['a#1']


def test_a_scope_that_is_begun_again_is_asked_for_again_from_the_start() -> None:
    records = _records(('done', 's#1/a#1'), ('done', 's#1/~1/b#1'), ('done', 's#1/c#1/d#1'), ('done', 't#1'))
    index = Index()
    for record in records:
        index.add(record)
    index.rewind('s#1')
    assert index.unreplayed_steps('s#1') == ['s#1/a#1', 's#1/c#1']
    assert index.unreplayed_branches('s#1') == ['s#1/~1']
    assert index.find_branch('s#1', 'b', '') == 's#1/~1'
    assert index.unreplayed_steps('s#1/c#1') == ['s#1/c#1/d#1']
    assert index.unreplayed_steps('') == []
