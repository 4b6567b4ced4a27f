"""Logging: quiet unless asked, levels by room, and never a key."""

import io
import logging
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.core.errors import SettingsError
from habilis.core.logs import (
    LEVELS,
    ROOMS,
    QuietHandler,
    Redaction,
    TerminalHandler,
    configure_logging,
    log_to_terminal,
    parse_levels,
)
from habilis.core.secrets import hide, redact
from habilis.core.settings import load_settings
from tests.cases import each_case
from tests.place import Place

KEY = f'private-{uuid.uuid4().hex}'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    root = logging.getLogger('habilis')
    handlers = list(root.handlers)
    yield
    root.handlers[:] = handlers
    configure_logging()


def enabled(room: str) -> str:
    """The lowest level that a room logs."""
    logger = logging.getLogger(f'habilis.{room}')
    return next(name for name, level in LEVELS.items() if logger.isEnabledFor(level))


class TestLevels:
    def test_only_warnings_are_logged_by_default(self) -> None:
        configure_logging()
        assert {enabled(room) for room in ROOMS} == {'warning'}

    def test_one_level_is_for_all_rooms(self) -> None:
        configure_logging('INFO')
        assert {enabled(room) for room in ROOMS} == {'info'}

    def test_rooms_have_levels_of_their_own(self) -> None:
        configure_logging('models=debug, agent=info')
        assert (enabled('models'), enabled('agent'), enabled('tools')) == ('debug', 'info', 'warning')

    def test_one_level_and_rooms_go_together(self) -> None:
        configure_logging('error,models.engine=debug')
        assert (enabled('models.engine'), enabled('models'), enabled('agent')) == ('debug', 'error', 'error')

    def test_levels_can_be_a_mapping(self) -> None:
        configure_logging({'': 'error', 'models': 'info'})
        assert (enabled('models'), enabled('agent')) == ('info', 'error')

    def test_what_was_set_before_is_forgotten(self) -> None:
        configure_logging('models=debug')
        configure_logging('agent=debug')
        assert (enabled('models'), enabled('agent')) == ('warning', 'debug')

    def test_other_loggers_are_left_alone(self) -> None:
        other = logging.getLogger('habilisish')
        other.setLevel(logging.INFO)
        configure_logging('debug')
        assert other.level == logging.INFO

    @pytest.mark.parametrize('variable', ['LOG_LEVEL', 'HABILIS_LOG_LEVEL'])
    def test_the_variable_takes_effect(self, place: Place, variable: str) -> None:
        place.environment(**{variable: 'models=debug'})
        configure_logging(load_settings())
        assert (enabled('models'), enabled('agent')) == ('debug', 'warning')

    def test_debug_logs_everything_whatever_the_level_says(self, place: Place) -> None:
        place.environment(HABILIS_DEBUG='1', LOG_LEVEL='error,models=critical')
        configure_logging(load_settings())
        assert {enabled(room) for room in ROOMS} == {'debug'}

    @pytest.mark.parametrize(
        ('text', 'complaint'),
        [
            ('loud', "unknown log level 'loud'; use one of debug, info"),
            ('models=', "unknown log level ''"),
            ('=debug', "unknown room ''"),
            ('modls=debug', 'did you mean models?'),
            ('zzz=debug', 'use one of core, journal'),
            ('models=debug=info', "unknown room 'models=debug'"),
        ],
    )
    def test_nonsense_is_refused_with_advice(self, text: str, complaint: str) -> None:
        with pytest.raises(SettingsError) as raised:
            configure_logging(text)
        assert complaint in str(raised.value)

    @given(st.dictionaries(st.sampled_from(['', *ROOMS]), st.sampled_from(list(LEVELS))))
    def test_levels_are_read_back_as_they_were_written(self, levels: dict[str, str]) -> None:
        text = ' , '.join(f'{room} = {level.upper()}' if room else level for room, level in levels.items())
        assert parse_levels(text) == {room: LEVELS[level] for room, level in levels.items()}


QUIET = """
import logging, sys
from habilis.core.logs import configure_logging
configure_logging('debug')
logging.getLogger('habilis.models').critical('nobody asked')
"""


def test_nothing_is_shown_unless_the_program_sets_up_logging() -> None:
    child = subprocess.run([sys.executable, '-c', QUIET], capture_output=True, text=True, check=True, timeout=600)
    assert child.stdout + child.stderr == ''


TERMINAL = """
import logging
from habilis.core.logs import configure_logging, log_to_terminal
from habilis.core.secrets import hide
hide(['private-value'])
configure_logging('info')
log_to_terminal()
log_to_terminal()
logging.getLogger('habilis.models').info('sent [bold]private-value[/bold]')
logging.getLogger('habilis.models').debug('not shown')
"""


def test_the_command_shows_it_once_on_stderr() -> None:
    child = subprocess.run([sys.executable, '-c', TERMINAL], capture_output=True, text=True, check=True, timeout=600)
    assert child.stdout == ''
    assert child.stderr.count('habilis.models: sent [bold]***[/bold]') == 1
    assert 'not shown' not in child.stderr


class Failing:
    """Its text is the key, wherever it is asked for."""

    def __repr__(self) -> str:
        return KEY


def shown(handler_place: str = '') -> tuple[io.StringIO, logging.Handler]:
    """A handler of the program's own, on the root logger or on one of ours."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger(handler_place).addHandler(handler)
    return stream, handler


class TestKeys:
    @pytest.fixture
    def output(self) -> Iterator[io.StringIO]:
        hide([KEY])
        configure_logging('debug')
        stream, handler = shown()
        yield stream
        logging.getLogger().removeHandler(handler)

    def test_a_key_in_the_message_or_its_arguments_is_not_logged(self, output: io.StringIO) -> None:
        log = logging.getLogger('habilis.models.engine')
        log.debug('key ' + KEY)  # noqa: G003 - as careless code would
        log.debug('key %s %r', KEY, {'headers': {'authorization': KEY}})
        log.info('object %s', Failing())
        assert output.getvalue().count('***') == 4
        assert KEY not in output.getvalue()

    def test_a_key_in_an_exception_is_not_logged(self, output: io.StringIO) -> None:
        try:
            try:
                raise ValueError(KEY)
            except ValueError as error:
                raise RuntimeError(f'again {KEY}') from error
        except RuntimeError:
            logging.getLogger('habilis.models').exception('it failed')
        assert 'RuntimeError: again ***' in output.getvalue()
        assert 'ValueError: ***' in output.getvalue()
        assert KEY not in output.getvalue()

    def test_a_key_in_a_message_with_a_wrong_format_is_not_logged(self, output: io.StringIO) -> None:
        logging.getLogger('habilis.models').debug('%d is not a number', KEY)
        assert KEY not in output.getvalue()
        assert '***' in output.getvalue()

    def test_a_key_in_a_stack_is_not_logged(self, output: io.StringIO) -> None:
        log = logging.getLogger('habilis.models')
        record = log.makeRecord('habilis.models', logging.ERROR, '', 0, 'm', (), None, sinfo=f'Stack: {KEY}')
        log.handle(record)
        assert KEY not in output.getvalue()
        assert 'Stack: ***' in output.getvalue()

    def test_a_longer_key_that_contains_another_is_hidden_whole(self) -> None:
        short, long = f'short-{uuid.uuid4().hex}', f'more-{uuid.uuid4().hex}'
        hide([short, f'{short}{long}'])
        assert redact(f'{short}{long}') == '***'

    def test_keys_of_all_sources_are_hidden_once_settings_are_loaded(self, place: Place, output: io.StringIO) -> None:
        keys = [f'{name}-{uuid.uuid4().hex}' for name in ('dotenv', 'environment', 'alias', 'argument')]
        place.dotenv(f'GROQ_API_KEY={keys[0]}\n')
        place.environment(SOME_SERVICE_TOKEN=keys[1])
        place.project(f'[models.a]\nmodel = "x:y"\napi_key = "{keys[2]}"\n')
        load_settings(api_key=keys[3])
        logging.getLogger('habilis.agent').debug('all: %s', keys)
        assert output.getvalue() == "all: ['***', '***', '***', '***']\n"

    @given(st.text(), st.text())
    def test_a_known_key_never_gets_through(self, before: str, after: str) -> None:
        hide([KEY])
        assert KEY not in redact(before + KEY + after)

    def test_words_are_not_taken_for_keys(self) -> None:
        hide(['', 'a', 'none'])
        text = 'a task: none of sk-learn, hf_hub, https://host/path and api keys is secret'
        assert redact(text) == text

    def test_a_very_long_line_is_no_burden(self) -> None:
        text = 'a' * 500_000 + ' ' + '://' * 100_000 + 'Bearer ' * 10_000
        assert redact(text).startswith('aaa')


@each_case(
    ('text', 'expected'),
    [
        ('key sk-proj-abcdefghijkl used', 'key *** used'),
        ('sk-ant-api03-abcdefghijkl', '***'),
        ('Authorization: Bearer abc.def-ghi', 'Authorization: Bearer ***'),
        ("{'authorization': 'bearer abc'}", "{'authorization': 'bearer ***'}"),
        ('Basic dXNlcjpwYXNz', 'Basic ***'),
        ("{'x-api-key': 'abc', 'a': 1}", "{'x-api-key': '***', 'a': 1}"),
        ('api_key=abc&x=1', 'api_key=***&x=1'),
        ('x-goog-api-key: abc', 'x-goog-api-key: ***'),
        ('https://me:secret@host/v1', 'https://me:***@host/v1'),
        ('gsk_abcdefghijklmnopqrst', '***'),
        ('AIzaSyA-abcdefghijklmnopqrstuvwxyz', '***'),
        ('AKIAABCDEFGHIJKLMNOP', '***'),
    ],
)
def test_what_looks_like_a_key_is_not_logged(text: str, expected: str) -> None:
    assert redact(text) == expected
    assert redact(expected) == expected


def test_our_handlers_redact_by_themselves() -> None:
    assert any(isinstance(handler, QuietHandler) for handler in logging.getLogger('habilis').handlers)
    terminal = log_to_terminal()
    assert any(isinstance(item, Redaction) for item in terminal.filters)


def test_what_is_logged_waits_for_the_end_of_a_line_that_others_have_begun(
    capsys: pytest.CaptureFixture[str],
) -> None:
    handler, begun = TerminalHandler(), True
    handler.has_open_line = lambda: begun
    for number in (1, 2):
        handler.handle(logging.makeLogRecord({'name': 'habilis.agent', 'levelno': 30, 'msg': f'number {number}'}))
    assert capsys.readouterr().err == ''
    begun = False
    handler.flush()
    assert capsys.readouterr().err == 'habilis: number 1\nhabilis: number 2\n'
