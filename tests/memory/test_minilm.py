"""The embedder of this machine knows that different words can mean the same."""

from pathlib import Path

import pytest

from habilis.memory import Memory, minilm
from habilis.memory.minilm import MiniLm, find_embedder

needs_the_model = pytest.mark.skipif(find_embedder() is None, reason="needs pip install 'habilis[embeddings]'")


@needs_the_model
async def test_a_paraphrased_question_finds_the_fact_offline(tmp_path: Path) -> None:
    async with Memory(tmp_path / 'memory.db', embedder=MiniLm()) as memory:
        for text in ('I gave up meat when I was sixteen.', 'My desk is on floor two.', 'The train leaves at noon.'):
            await memory.add_fact(text)
        await memory.embed_missing()
        assert (await memory.search('Am I a vegetarian?'))[0].entry.text == 'I gave up meat when I was sixteen.'
        assert (await memory.search('\ud800'))[:0] == []


def test_without_its_packages_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, '_MODEL', ('habilis-has-no-such-package', 'x'))
    assert find_embedder() is None
    with pytest.raises(ImportError, match=r'habilis\[embeddings\]'):
        MiniLm()
