"""Which weights are there."""

import re
from pathlib import Path

import pytest

from habilis.core.errors import DownloadError, ModelNotFound, NoModel
from habilis.models.local import store


@pytest.mark.usefixtures('cache')
def test_a_model_that_is_not_installed_says_how_to_get_it() -> None:
    with pytest.raises(NoModel, match=r'`habilis models install qwen2\.5-coder-1\.5b` \(1\.1 GB\)'):
        store.find('')


def test_a_file_of_another_size_is_not_the_model(cache: Path) -> None:
    (cache / 'models').mkdir(parents=True)
    (cache / 'models' / 'qwen2.5-coder-1.5b-instruct-q4_k_m.gguf').write_bytes(b'GGUF')
    assert store.installed() is None


def test_any_gguf_file_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / 'own.gguf'
    path.write_bytes(b'GGUF and more')
    assert store.find(str(path)) == path


@pytest.mark.parametrize(
    ('content', 'complaint'), [(None, 'No such file'), (b'', 'not a GGUF file'), (b'PK\x03\x04', 'not a GGUF file')]
)
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    path = tmp_path / 'own.gguf'
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelNotFound, match=complaint):
        store.find(str(path))


def test_a_folder_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match='cannot read the weights'):
        store.find(f'{tmp_path}/')


@pytest.mark.parametrize('name', ['a.gguf', '/m/a', './a', '~/a.gguf'])
def test_what_looks_like_a_path(name: str) -> None:
    assert store.looks_like_path(name)


@pytest.mark.parametrize('name', ['', 'qwen2.5-coder-1.5b', 'tiny'])
def test_what_looks_like_a_name(name: str) -> None:
    assert not store.looks_like_path(name)


def test_what_cannot_be_removed_is_named(cache: Path) -> None:
    odd = cache / 'models' / 'qwen2.5-coder-1.5b-instruct-q4_k_m.gguf'
    odd.mkdir(parents=True)
    with pytest.raises(DownloadError, match=f'^cannot remove {re.escape(str(odd))}: '):
        store.remove('')
