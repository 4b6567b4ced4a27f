"""Search over the tools of a library."""

import contextlib
import multiprocessing
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.forge.library.library import Library
from habilis.tools.search_index import IndexedTool, SearchIndex
from tests.forge.samples import double

ENTRIES = [
    IndexedTool(name='percent_of', version=1, summary='Percent of a number.', signature='', text='share'),
    IndexedTool(name='slugify', version=3, summary='Turn a title into a slug for a web address.', signature=''),
    IndexedTool(
        name='word_count', version=1, summary='Count words in a text.', signature='', text='frequency of words'
    ),
]


@pytest.fixture
def index(tmp_path: Path) -> SearchIndex:
    made = SearchIndex(tmp_path / 'index.db')
    for entry in ENTRIES:
        made.put(entry)
    return made


@pytest.fixture(scope='module')
def shared(tmp_path_factory: pytest.TempPathFactory) -> SearchIndex:
    made = SearchIndex(tmp_path_factory.mktemp('index') / 'index.db')
    made.replace_all(ENTRIES)
    return made


def names(index: SearchIndex, query: str, *, limit: int = 5, threshold: float = 0.0) -> list[str]:
    return [found.name for found in index.search(query, limit=limit, threshold=threshold)]


def test_other_forms_of_a_word_are_found(index: SearchIndex) -> None:
    assert names(index, 'What is 15 percent of 300?') == ['percent_of']
    assert names(index, 'titled slugs') == ['slugify']
    assert names(index, 'counting the word frequencies') == ['word_count']


def test_texts_in_quotes_are_arguments_and_not_searched(index: SearchIndex) -> None:
    assert names(index, "make a slug of 'Percent of words'") == ['slugify']


def test_the_threshold_leaves_out_what_matches_little(index: SearchIndex) -> None:
    assert names(index, 'percent weather forecast tomorrow', threshold=0.9) == []
    assert names(index, 'percent weather forecast tomorrow') == ['percent_of']


def test_a_replaced_tool_is_found_by_its_new_words_only(index: SearchIndex) -> None:
    index.put(IndexedTool(name='slugify', version=4, summary='Kebab case.', signature=''))
    assert names(index, 'kebab cases') == ['slugify']
    assert names(index, 'web address') == []
    assert index.versions() == {'percent_of': 1, 'slugify': 4, 'word_count': 1}


def test_a_dropped_tool_is_not_found(index: SearchIndex) -> None:
    index.drop('slugify')
    index.drop('never_there')
    assert names(index, 'slug') == []


def test_a_damaged_file_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / 'index.db'
    path.write_bytes(b'not a database' * 1000)
    index = SearchIndex(path)
    index.put(ENTRIES[0])
    assert names(index, 'percent') == ['percent_of']


def test_the_index_of_an_older_version_is_made_anew(tmp_path: Path) -> None:
    library = Library(tmp_path / 'library')
    library.add(double())
    path = library.folder / '.index.db'
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute('DROP TABLE counts')  # which the first version did not have
        db.execute('PRAGMA user_version = 0')
    assert [found.name for found in Library(library.folder).search('twice a number')] == ['double']


@given(query=st.text(), limit=st.integers(1, 9), threshold=st.floats(0, 1))
def test_no_query_makes_it_crash(shared: SearchIndex, query: str, limit: int, threshold: float) -> None:
    found = shared.search(query, limit=limit, threshold=threshold)
    assert len(found) <= limit
    assert all(threshold <= one.score <= 1 for one in found)


@pytest.mark.parametrize(
    'query', ['"', '" OR "', 'NEAR(a b)', 'a AND NOT b', '*', 'percent*', "'; DROP TABLE tools; --"]
)
def test_the_language_of_the_search_engine_has_no_meaning(index: SearchIndex, query: str) -> None:
    index.search(query, limit=5, threshold=0)
    assert names(index, 'percent') == ['percent_of']


@given(st.text(min_size=1), st.text(), st.text())
def test_any_text_can_be_kept(tmp_path_factory: pytest.TempPathFactory, name: str, summary: str, text: str) -> None:
    index = SearchIndex(tmp_path_factory.mktemp('any') / 'index.db')
    entry = IndexedTool(name=name, version=1, summary=summary, signature='', text=text)
    try:
        f'{name}{summary}{text}'.encode()
    except UnicodeEncodeError:
        return
    index.put(entry)
    index.put(entry)
    assert index.versions() == {name: 1}
    index.drop(name)
    assert index.versions() == {}


def _put_many(path: Path) -> None:
    index = SearchIndex(path)
    for number in range(30):
        index.put(IndexedTool(name=f'tool_{number}', version=1, summary='Same words.', signature=''))


def test_two_processes_may_put_the_same_tools(tmp_path: Path) -> None:
    context = multiprocessing.get_context('fork')
    writers = [context.Process(target=_put_many, args=(tmp_path / 'index.db',)) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert len(SearchIndex(tmp_path / 'index.db').versions()) == 30
