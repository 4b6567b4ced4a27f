"""Vectors from an OpenAI-compatible endpoint: batches, order, retries, errors; and a memory that uses them."""

import json
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from habilis.core.errors import ModelAccessDenied, ModelError, ModelRefused, ModelUnavailable
from habilis.memory import Memory
from habilis.models.embeddings import MAX_BATCH, ProviderEmbedder
from tests.memory.sample import HashEmbedder

Answer = Callable[[list[str]], tuple[int, dict[str, Any]]]


class Server:
    """Speaks `/v1/embeddings`, and records what it is asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.answers: list[Answer] = []
        """For the next requests, in order; then as usual."""

        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
                outer.asked.append({'path': self.path, **body})
                outer.keys.append(self.headers.get('Authorization', ''))
                make = outer.answers.pop(0) if outer.answers else vectors_of
                status, answer = make(body['input'])
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header('Content-Type', 'application/json')
                self.send_header('Content-Length', str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing on the terminal."""

        self.http = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.url = f'http://127.0.0.1:{self.http.server_address[1]}/v1'


@pytest.fixture
def server() -> Generator[Server]:
    running = Server()
    thread = Thread(target=running.http.serve_forever, kwargs={'poll_interval': 0.01})
    thread.start()
    yield running
    running.http.shutdown()
    running.http.server_close()
    thread.join()


def vectors_of(texts: list[str]) -> tuple[int, dict[str, Any]]:
    """Vectors by meaning, as `HashEmbedder` has them."""
    made = [HashEmbedder().vector(text) for text in texts]
    data = [{'object': 'embedding', 'index': index, 'embedding': vector} for index, vector in enumerate(made)]
    return 200, {'object': 'list', 'data': data, 'model': 'm', 'usage': {'prompt_tokens': 1, 'total_tokens': 1}}


def answering(body: dict[str, Any], status: int = 200) -> Answer:
    return lambda texts: (status, body)


def failing(status: int, message: str) -> Answer:
    return answering({'error': {'message': message}}, status)


async def test_texts_are_embedded_in_batches_and_come_back_in_order(server: Server) -> None:
    embedder = ProviderEmbedder('vllm:m', base_url=server.url, api_key='k-123456', dimensions=16)
    texts = [f'text {number}' for number in range(MAX_BATCH + 5)]
    assert await embedder.embed(texts) == [HashEmbedder().vector(text) for text in texts]
    assert [len(asked['input']) for asked in server.asked] == [MAX_BATCH, 5]
    first = server.asked[0]
    assert (first['path'], first['model'], first['dimensions']) == ('/v1/embeddings', 'm', 16)
    assert server.keys == ['Bearer k-123456'] * 2
    assert embedder.name.endswith(':m/16')


async def test_a_transient_error_is_retried_and_others_are_not(server: Server) -> None:
    embedder = ProviderEmbedder('vllm:m', base_url=server.url)
    server.answers = [failing(503, 'overloaded'), failing(429, 'slow down')]
    assert len(await embedder.embed(['a'])) == 1
    assert len(server.asked) == 3
    server.answers = [failing(401, 'wrong key')]
    with pytest.raises(ModelAccessDenied, match='wrong key'):
        await embedder.embed(['a'])
    assert len(server.asked) == 4


@pytest.mark.parametrize(
    'answer',
    [
        {'data': []},
        {'hello': 1},
        {'data': [{'index': 0, 'embedding': [1.0]}, {'index': 1, 'embedding': [1.0, 2.0]}]},
    ],
)
async def test_an_answer_without_the_right_vectors_is_an_error(server: Server, answer: dict[str, Any]) -> None:
    server.answers = [answering(answer)]
    with pytest.raises(ModelUnavailable, match='sent an invalid response'):
        await ProviderEmbedder('vllm:m', base_url=server.url, retries=0).embed(['a', 'b'])


async def test_what_cannot_work_is_refused_with_a_line_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('OPENAI_API_KEY', raising=False)
    with pytest.raises(ModelRefused, match='anthropic has no OpenAI-compatible embeddings: use openai'):
        ProviderEmbedder('anthropic:claude')
    with pytest.raises(ModelError, match='openai:text-embedding-3-small needs a key: set OPENAI_API_KEY'):
        await ProviderEmbedder('openai:text-embedding-3-small').embed(['a'])
    with pytest.raises(ModelUnavailable, match=r'127\.0\.0\.1:9'):
        await ProviderEmbedder('vllm:m', base_url='http://127.0.0.1:9/v1', retries=0).embed(['a'])


async def test_a_memory_changes_to_it_without_losing_search(server: Server, tmp_path: Path) -> None:
    path = tmp_path / 'memory.db'
    async with Memory(path, embedder=HashEmbedder('small', size=16)) as memory:
        for number in range(40):
            await memory.add_turn('chat', 'user', f'filler sentence number {number}')
        await memory.add_turn('pets', 'user', 'our hound sleeps a lot')
        await memory.embed_missing()
    server.answers = [failing(500, 'not now')] * 9
    async with Memory(path, embedder=ProviderEmbedder('vllm:m', base_url=server.url, retries=0)) as memory:
        assert (await memory.search('hound'))[0].entry.text == 'our hound sleeps a lot', 'by its words, meanwhile'
        server.answers.clear()
        assert await memory.embed_missing() == 41
        assert (await memory.search('puppy'))[0].entry.text == 'our hound sleeps a lot', 'by its meaning'
