"""The server for the weights. Tests of its replies need the weights: `tests/models/test_llamacpp_server.py`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from evals.server import NoServer, model_server, served_model


def test_the_name_of_the_model_is_the_one_its_server_gives(
    answering: Callable[[int, bytes], str],
) -> None:
    url = answering(200, b'{"data": [{"id": "tiny.gguf"}, {"id": "other"}]}')
    assert served_model(url) == served_model(f'{url}/') == 'tiny.gguf'


@pytest.mark.parametrize(
    ('status', 'body', 'complaint'),
    [
        (503, b'{"error": "loading"}', 'has no model .* status 503'),
        (200, b'{"data": []}', 'has no model'),
        (200, b'<html>', 'no model server answers'),
        (200, b'[]', 'no model server answers'),
        (200, b'{"data": null}', 'no model server answers'),
        (200, b'{"data": [{}]}', 'no model server answers'),
    ],
)
def test_an_address_without_a_model_server_is_an_error(
    answering: Callable[[int, bytes], str], status: int, body: bytes, complaint: str
) -> None:
    with pytest.raises(NoServer, match=complaint):
        served_model(answering(status, body))


def test_a_server_with_invalid_weights_ends_at_once(tmp_path: Path) -> None:
    weights = tmp_path / 'notes.gguf'
    weights.write_bytes(b'GGUF, says this text, but it is none')
    with pytest.raises(NoServer, match='ended at once'), model_server(weights):
        pass
