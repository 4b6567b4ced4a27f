"""The embedder is a setting: off, that of this machine, or a model of a provider, which may fail."""

import json
from collections.abc import Generator
from pathlib import Path
from threading import Thread

import pytest

from habilis.cli.memory.embedders import choose_embedder
from habilis.core.errors import ModelNotFound
from habilis.core.settings import Settings
from habilis.memory import Memory
from tests.cli.process import habilis
from tests.models.test_embeddings import Server
from tests.place import Place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


@pytest.fixture
def server(place: Place) -> Generator[Server]:
    """A server of embeddings, which the settings name `meaning`."""
    running = Server()
    thread = Thread(target=running.http.serve_forever, kwargs={'poll_interval': 0.01})
    thread.start()
    place.project(f'[models.meaning]\nmodel = "openai:small"\nbase_url = "{running.url}"\napi_key = "sk-x"\n')
    yield running
    running.http.shutdown()
    running.http.server_close()
    thread.join()


async def test_a_model_of_a_provider_embeds_and_finds_by_meaning(place: Place, server: Server) -> None:
    async with Memory() as memory:
        await memory.add_turn('pets', 'user', 'our hound sleeps a lot')
    done = habilis('memory', 'embed', '--embedder', 'meaning', '--json')
    assert json.loads(done.stdout) == {'embedder': 'openai:small', 'embedded': 1}
    place.environment(HABILIS_EMBEDDER='meaning')
    assert 'our hound sleeps' in habilis('memory', 'search', 'puppy').stdout
    assert habilis('memory', 'search', 'puppy', '--embedder', 'off').returncode == 1
    assert len(server.asked) == 2


async def test_search_continues_with_words_if_the_endpoint_fails(place: Place, server: Server) -> None:
    server.answers = [lambda _: (500, {'error': {'message': 'broken'}})] * 9
    async with Memory() as memory:
        await memory.add_turn('pets', 'user', 'our hound sleeps a lot')
    done = habilis('memory', 'search', 'hound', '--embedder', 'meaning')
    assert (done.returncode, 'our hound sleeps' in done.stdout) == (0, True)
    [said] = done.stderr.splitlines()
    assert 'found by their words only, because the embedder failed' in said
    assert '500' in said
    done = habilis('memory', 'embed', '--embedder', 'meaning')
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)


def test_what_is_no_embedder_is_refused_in_one_line(place: Place) -> None:
    assert choose_embedder(Settings(embedder='off')) is None
    with pytest.raises(ModelNotFound, match='nonsense'):
        choose_embedder(Settings(embedder='nonsense'))
    done = habilis('memory', 'embed', '--embedder', 'off')
    assert done.returncode == 1
    assert 'there is no embedder' in done.stderr
