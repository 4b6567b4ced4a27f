"""An embedder adds search by meaning. It is a second opinion, works in the background, and can be changed."""

import asyncio
from pathlib import Path

import pytest

from habilis.memory import Memory
from tests.memory.conftest import Open
from tests.memory.sample import HashEmbedder
from tests.waiting import until


async def fill(memory: Memory) -> None:
    for number in range(20):
        await memory.add_turn('chat', 'user', f'filler sentence number {number}')
    await memory.add_turn('pets', 'user', 'our hound sleeps a lot')
    await memory.add_turn('garage', 'user', 'XJ9000 is parked outside')


async def test_a_paraphrase_is_found_by_its_meaning(open_memory: Open) -> None:
    memory = open_memory(embedder=HashEmbedder())
    await fill(memory)
    await memory.embed_missing()
    best = (await memory.search('puppy'))[0]
    assert best.entry.text == 'our hound sleeps a lot'
    assert best.words == 0
    assert best.meaning is not None
    assert best.meaning > 0.8


async def test_an_exact_rare_word_wins_over_vague_similarity(open_memory: Open) -> None:
    memory = open_memory(embedder=HashEmbedder())
    await fill(memory)
    await memory.embed_missing()
    assert (await memory.search('vehicle XJ9000'))[0].entry.text == 'XJ9000 is parked outside'


async def test_another_embedder_embeds_all_again_and_search_works_meanwhile(open_memory: Open) -> None:
    first = open_memory(embedder=HashEmbedder('first'))
    await fill(first)
    await first.embed_missing()
    second = open_memory(embedder=HashEmbedder('second', size=32))
    assert (await second.search('hound'))[0].entry.text == 'our hound sleeps a lot'
    assert await second.embed_missing() == 22
    assert await second.embed_missing() == 0
    assert (await second.search('puppy'))[0].entry.text == 'our hound sleeps a lot'


async def test_what_others_add_and_forget_is_noticed(open_memory: Open) -> None:
    one, other = open_memory(embedder=HashEmbedder()), open_memory(embedder=HashEmbedder())
    await fill(one)
    await one.embed_missing()
    await other.search('puppy')
    added = await one.add_turn('work', 'user', 'my salary is a secret')
    await one.embed_missing()
    assert (await other.search('money'))[0].entry == added
    await one.forget(added.id)
    assert added not in [hit.entry for hit in await other.search('money')]


async def test_new_turns_are_embedded_in_the_background(tmp_path: Path) -> None:
    embedder = HashEmbedder()
    async with Memory(tmp_path / 'memory.db', embedder=embedder) as memory:
        turn = await memory.add_turn('pets', 'user', 'our hound sleeps a lot')
        await until(lambda: bool(embedder.texts))
        await asyncio.sleep(0)
        hits = await memory.search('puppy')
        assert [hit.entry for hit in hits] == [turn]


async def test_a_failing_embedder_leaves_search_by_words(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(HashEmbedder):
        async def embed(self, texts: object) -> list[list[float]]:  # pyright: ignore[reportIncompatibleMethodOverride]
            raise OSError('no such model')

    async with Memory(tmp_path / 'memory.db', embedder=Broken()) as memory:
        turn = await memory.add_turn('pets', 'user', 'our hound sleeps a lot')
        await until(lambda: bool(caplog.text))
        assert [hit.entry for hit in await memory.search('hound')] == [turn]
    async with Memory(tmp_path / 'memory.db', embedder=HashEmbedder()) as memory:
        await memory.embed_missing()
    async with Memory(tmp_path / 'memory.db', embedder=Broken('hash')) as memory:
        assert [hit.entry for hit in await memory.search('hound')] == [turn]
    assert caplog.text.count('because the embedder failed: no such model') >= 2


async def test_another_model_of_the_same_name_embeds_all_again(open_memory: Open) -> None:
    first = open_memory(embedder=HashEmbedder('same'))
    await fill(first)
    await first.embed_missing()
    second = open_memory(embedder=HashEmbedder('same', size=32))
    await second.search('puppy')
    assert await second.embed_missing() == 22
    assert (await second.search('puppy'))[0].entry.text == 'our hound sleeps a lot'
