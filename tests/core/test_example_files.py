"""The example files and the page of settings name every setting, and what they say is true."""

import re
from pathlib import Path

import pytest

from habilis.core.settings import NAMES, ModelSettings, Settings, load_settings
from habilis.models.providers import PROVIDERS
from tests.cases import each_case
from tests.house.repository import ROOT
from tests.place import Place

DOTENV = ROOT / '.env.example'
TOML = ROOT / 'habilis.example.toml'
PAGE = ROOT / 'docs' / 'reference' / 'settings.md'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def uncommented(file: Path) -> str:
    """With every setting in force: `#name = …` is a setting, `# text` is a comment."""
    return re.sub(r'^#(?=[\w\[])', '', file.read_text(encoding='utf-8'), flags=re.MULTILINE)


def test_the_example_files_change_nothing_as_they_are(place: Place) -> None:
    place.dotenv(DOTENV.read_text(encoding='utf-8'))
    place.project(TOML.read_text(encoding='utf-8'))
    assert load_settings() == Settings()


def test_every_setting_is_in_the_example_of_dotenv(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.dotenv(uncommented(DOTENV))
    settings = load_settings()
    assert {name for name in NAMES if settings.origin(name) == '.env'} == set(NAMES) - {'models'}
    assert settings.models['fast'].model == 'openai:gpt-5-mini'
    assert caplog.records == []


def test_every_setting_is_in_the_example_of_habilis_toml(place: Place) -> None:
    place.project(uncommented(TOML))
    settings = load_settings()
    assert {name for name in NAMES if settings.origin(name) == 'project'} == set(NAMES) - {'models'}
    assert {field for model in settings.models.values() for field in model.model_fields_set} == set(
        ModelSettings.model_fields
    )


def test_every_key_of_a_provider_is_in_the_example_of_dotenv() -> None:
    wanted = {key for provider in PROVIDERS.values() if provider.needs_key for key in provider.keys}
    assert {key for key in wanted if f'#{key}=' not in DOTENV.read_text(encoding='utf-8')} == set()


@each_case('name', NAMES)
def test_every_setting_is_on_the_page_with_its_default(name: str) -> None:
    row = re.search(
        rf'^\| `{name}` \| `HABILIS_{name.upper()}`[^|]*\| (?P<default>[^|]*) \|', PAGE.read_text(), re.MULTILINE
    )
    assert row, f'{name} is not in the table of {PAGE.name}'
    default = Settings.model_fields[name].default
    if isinstance(default, bool):
        assert row['default'] == str(default).lower()
    elif isinstance(default, int | float):
        assert float(row['default']) == default
    elif isinstance(default, str):
        assert row['default'] == f'`{default}`'


@each_case('field', ModelSettings.model_fields)
def test_every_setting_of_an_alias_is_on_the_page(field: str) -> None:
    section = PAGE.read_text(encoding='utf-8').partition('## Aliases')[2].partition('\n## ')[0]
    assert f'`{field}`' in section
