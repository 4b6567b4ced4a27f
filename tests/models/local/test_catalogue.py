"""The list of models that can be installed, ours and a user's own."""

from pathlib import Path

import pytest

from habilis.core.errors import ModelNotFound, SettingsError
from habilis.core.previews import format_size
from habilis.models.local import catalogue
from habilis.models.local.catalogue import HubSource, RegistrySource

MODEL = """
[[model]]
name = "{name}"
file = "{file}"
bytes = {bytes}
licence = "MIT"
sha256 = "{sha256}"
context_tokens = 512
sources = [{source}]
"""
RIGHT = {'name': 'own', 'file': 'own.gguf', 'bytes': '10', 'sha256': 'a' * 64, 'source': '{url = "https://h.test/f"}'}


def own(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    path = folder / 'own.toml'
    path.write_text(text, encoding='utf-8')
    monkeypatch.setenv('HABILIS_CATALOGUE', str(path))


def test_every_model_has_a_hub_and_parts_in_the_registry() -> None:
    assert [entry.name for entry in catalogue.entries()] == ['qwen2.5-coder-1.5b', 'qwen2.5-coder-0.5b']
    for entry in catalogue.entries():
        first, second = entry.sources
        assert isinstance(first, HubSource)
        assert first.url.endswith(entry.file)
        assert isinstance(second, RegistrySource)
        assert entry.licence == 'Apache-2.0'


def test_no_name_means_the_default_model() -> None:
    assert catalogue.entry() == catalogue.entry(catalogue.DEFAULT)
    assert catalogue.entry().size == '1.1 GB'


def test_an_unknown_name_gets_the_nearest_ones() -> None:
    with pytest.raises(ModelNotFound, match=r"no model 'qwen2\.5-coder-15b'; did you mean qwen2\.5-coder-1\.5b"):
        catalogue.entry('qwen2.5-coder-15b')
    with pytest.raises(ModelNotFound, match='habilis models list'):
        catalogue.entry('../../etc/passwd')


def test_a_catalogue_of_ones_own_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own(tmp_path, monkeypatch, MODEL.format(**{**RIGHT, 'name': catalogue.DEFAULT}) + MODEL.format(**RIGHT))
    assert [entry.name for entry in catalogue.entries()] == [catalogue.DEFAULT, 'own', 'qwen2.5-coder-0.5b']
    assert catalogue.entry().file == 'own.gguf'


@pytest.mark.parametrize(
    ('change', 'complaint'),
    [
        ({'file': '../own.gguf'}, 'without folders'),
        ({'file': '/etc/own.gguf'}, 'without folders'),
        ({'file': '.hidden'}, 'without folders'),
        ({'name': '../own'}, 'name'),
        ({'bytes': '0'}, 'bytes'),
        ({'bytes': '"many"'}, 'bytes'),
        ({'sha256': 'abc'}, 'sha256'),
        ({'source': ''}, 'sources'),
        ({'source': '{url = "file:///etc/passwd"}'}, 'sources'),
        ({'source': '{url = "http://[bad/f"}'}, 'is not a URL such as'),
        ({'source': '{url = "http://h.test/a b"}'}, 'is not a URL such as'),
        ({'source': '{packages = "p{n}", count = 1, version = "1", payload = "("}'}, 'not a valid regular expression'),
    ],
)
def test_a_wrong_catalogue_is_reported_with_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, str], complaint: str
) -> None:
    own(tmp_path, monkeypatch, MODEL.format(**{**RIGHT, **change}))
    with pytest.raises(SettingsError, match=complaint) as caught:
        catalogue.entries()
    assert 'HABILIS_CATALOGUE' in str(caught.value)


@pytest.mark.parametrize('text', ['[[model', 'model = 3', 'other = 1', MODEL.format(**RIGHT) * 2])
def test_nonsense_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    own(tmp_path, monkeypatch, text)
    with pytest.raises(SettingsError, match='HABILIS_CATALOGUE'):
        catalogue.entries()


def test_a_missing_catalogue_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HABILIS_CATALOGUE', str(tmp_path / 'missing.toml'))
    with pytest.raises(SettingsError, match='cannot read the catalogue'):
        catalogue.entries()


@pytest.mark.parametrize(
    ('count', 'words'), [(1_117_320_768, '1.1 GB'), (491_400_064, '491 MB'), (1_500, '1.5 kB'), (30, '30 bytes')]
)
def test_sizes_are_said_as_people_say_them(count: int, words: str) -> None:
    assert format_size(count) == words
