"""Where settings are read from: variables, `.env` and `habilis.toml`, also when they are damaged."""

import contextlib
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.core import settings_sources
from habilis.core.errors import SettingsError
from habilis.core.settings import NAMES, load_settings
from tests.place import Place

NAME = st.from_regex(r'[A-Z_][A-Z0-9_]{0,20}', fullmatch=True)
VALUE = st.text(st.characters(exclude_categories=['C', 'Z']), max_size=30)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


class TestUnknownNames:
    def test_one_in_the_file_is_an_error_that_names_key_file_and_nearest(self, place: Place) -> None:
        file = place.project('max_step = 3\n')
        with pytest.raises(SettingsError) as raised:
            load_settings()
        assert str(raised.value) == f'{file}:max_step is not a setting; did you mean max_steps?'

    def test_one_that_is_like_nothing_gets_the_list(self, place: Place) -> None:
        place.user('qqqqqqqq = 3\n')
        with pytest.raises(SettingsError, match=r'qqqqqqqq is not a setting; known: api_key, base_url'):
            load_settings()

    def test_one_in_the_environment_is_a_warning(self, place: Place, caplog: pytest.LogCaptureFixture) -> None:
        place.environment(HABILIS_MAX_STEP='3')
        load_settings()
        [record] = caplog.records
        assert record.levelno == logging.WARNING
        assert record.getMessage() == 'HABILIS_MAX_STEP is not a setting; did you mean HABILIS_MAX_STEPS?'

    def test_one_in_dotenv_is_a_warning_that_names_the_file(
        self, place: Place, caplog: pytest.LogCaptureFixture
    ) -> None:
        file = place.dotenv('HABILIS_MODLE=x:y\nOTHER_PROGRAM=1\n')
        load_settings()
        [record] = caplog.records
        assert record.getMessage() == f'{file}:HABILIS_MODLE is not a setting; did you mean HABILIS_MODEL?'

    def test_variables_that_are_read_elsewhere_are_known(self, place: Place, caplog: pytest.LogCaptureFixture) -> None:
        place.environment(HABILIS_TRACEBACK='1', HABILIS_CACHE='cache')
        load_settings()
        assert caplog.records == []

    def test_every_variable_that_the_package_reads_is_known(self) -> None:
        import re

        from tests.house.repository import PACKAGE

        read = {
            name
            for path in PACKAGE.rglob('*.py')
            for name in re.findall(r"environ(?:\.get\(|\[)'(HABILIS_\w+)'", path.read_text(encoding='utf-8'))
        }
        of_settings = {f'HABILIS_{name.upper()}' for name in NAMES}
        assert read - settings_sources.OTHER_VARIABLES - of_settings == set()


class TestDotenv:
    def test_quotes_comments_and_export_are_understood(self, place: Place) -> None:
        lines = ['\ufeff# a comment', '', 'export A=1', 'B = "two words" # why', "C='single # no comment'"]
        file = place.dotenv('\n'.join([*lines, 'D=plain#part', r'E="a\nb"', 'F', '']))
        assert settings_sources.read_variables(file) == {
            'A': '1',
            'B': 'two words',
            'C': 'single # no comment',
            'D': 'plain#part',
            'E': 'a\nb',
        }

    def test_a_dollar_has_no_meaning(self, place: Place) -> None:
        file = place.dotenv('A=pa$$word\nB=${A}\n')
        assert settings_sources.read_variables(file) == {'A': 'pa$$word', 'B': '${A}'}

    def test_the_last_of_two_counts(self, place: Place) -> None:
        assert settings_sources.read_variables(place.dotenv('A=1\nA=2\n')) == {'A': '2'}

    def test_a_line_that_is_none_is_named_but_not_shown(self, place: Place) -> None:
        file = place.dotenv('A=1\n\nB="private\nC=3\n')
        with pytest.raises(SettingsError, match='expected NAME=value') as raised:
            load_settings()
        assert str(raised.value).startswith(f'{file}, line 3:')
        assert 'private' not in str(raised.value)

    def test_a_file_that_is_not_text_is_an_error(self, place: Place) -> None:
        (place.folder / '.env').write_bytes(b'A=\xff\xfe\n')
        with pytest.raises(SettingsError, match=r'\.env: it is not UTF-8'):
            load_settings()

    def test_a_folder_in_its_place_is_an_error(self, place: Place) -> None:
        (place.folder / '.env').mkdir()
        with pytest.raises(SettingsError, match=r'cannot read .*\.env'):
            load_settings()

    @given(st.dictionaries(NAME, VALUE))
    def test_what_is_written_in_single_quotes_is_read_back(
        self, tmp_path_factory: pytest.TempPathFactory, variables: dict[str, str]
    ) -> None:
        quoted = {name: value.replace('\\', '\\\\').replace("'", "\\'") for name, value in variables.items()}
        file = tmp_path_factory.mktemp('written') / '.env'
        file.write_text(''.join(f"{name}='{value}'\n" for name, value in quoted.items()), encoding='utf-8')
        assert settings_sources.read_variables(file) == variables

    @given(st.text(max_size=200))
    def test_any_text_is_read_or_refused(self, tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
        file = tmp_path_factory.mktemp('any') / '.env'
        file.write_bytes(text.encode('utf-8', 'surrogatepass'))
        with contextlib.suppress(SettingsError):
            assert all(settings_sources.read_variables(file))


class TestToml:
    def test_a_file_that_is_not_toml_is_reported_in_one_line(self, place: Place) -> None:
        file = place.project('model = \n')
        with pytest.raises(SettingsError, match='line 1') as raised:
            load_settings()
        assert str(raised.value).startswith(f'{file} is not valid TOML: ')
        assert '\n' not in str(raised.value)

    def test_a_folder_in_its_place_is_an_error(self, place: Place) -> None:
        (place.folder / 'habilis.toml').mkdir()
        with pytest.raises(SettingsError, match=r'cannot read .*habilis\.toml'):
            load_settings()

    def test_nesting_without_end_is_refused(self, place: Place) -> None:
        place.project('model = ' + '[' * 100_000)
        with pytest.raises(SettingsError, match='is not valid TOML'):
            load_settings()

    @given(st.text(max_size=200))
    def test_any_text_is_read_or_refused(self, tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
        file = tmp_path_factory.mktemp('any') / 'habilis.toml'
        file.write_bytes(text.encode('utf-8', 'surrogatepass'))
        with contextlib.suppress(SettingsError):
            assert settings_sources.from_toml(file, 'project', NAMES).keys() <= set(NAMES)


class TestProjectFile:
    def test_without_a_repository_only_the_folder_itself_counts(self, tmp_path: Path) -> None:
        inner = tmp_path / 'a' / 'b'
        inner.mkdir(parents=True)
        (tmp_path / 'habilis.toml').touch()
        assert settings_sources.project_file(inner) is None
        assert settings_sources.project_file(tmp_path) == tmp_path / 'habilis.toml'

    def test_inside_a_repository_parents_count_up_to_its_root(self, tmp_path: Path) -> None:
        root = tmp_path / 'root'
        inner = root / 'a' / 'b'
        inner.mkdir(parents=True)
        (root / '.git').mkdir()
        (tmp_path / 'habilis.toml').touch()
        assert settings_sources.project_file(inner) is None
        (root / 'habilis.toml').touch()
        assert settings_sources.project_file(inner) == root / 'habilis.toml'
        (root / 'a' / 'habilis.toml').touch()
        assert settings_sources.project_file(inner) == root / 'a' / 'habilis.toml'

    def test_a_worktree_is_a_repository_too(self, tmp_path: Path) -> None:
        inner = tmp_path / 'a'
        inner.mkdir()
        (tmp_path / '.git').write_text('gitdir: elsewhere')
        (tmp_path / 'habilis.toml').touch()
        assert settings_sources.project_file(inner) == tmp_path / 'habilis.toml'
