"""Every event is one log record: short, at a sensible level, and without keys."""

import logging
from collections.abc import Iterator

import pytest

from habilis.agent.hooks import LogEvents
from habilis.agent.hooks.logs import LENGTH
from habilis.core.errors import ModelError
from habilis.core.logs import configure_logging
from habilis.core.secrets import hide
from tests.agent.hooks.samples import sample
from tests.agent.hooks.watching import ANSWER, Seen, code, watch

KEY = 'sk-proj-abcdefghijklmnopqrstuvwxyz123456'


@pytest.fixture(autouse=True)
def default_levels() -> Iterator[None]:
    """Levels that a test sets are gone after it."""
    yield
    configure_logging()


def levels(caplog: pytest.LogCaptureFixture) -> dict[str, str]:
    """The level of each kind of event."""
    return {vars(record)['event']: record.levelname for record in caplog.records}


async def test_each_event_of_a_run_is_one_record(caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen()
    configure_logging('agent=debug')
    await watch([code('print(1)'), ANSWER], LogEvents(), seen)
    assert [vars(record)['event'] for record in caplog.records if record.name == 'habilis.agent'] == seen.kinds


async def test_tokens_are_for_debugging_and_steps_and_answers_for_information(caplog: pytest.LogCaptureFixture) -> None:
    configure_logging('agent=debug')
    await watch([code('print(1)'), ANSWER], LogEvents())
    found = levels(caplog)
    assert {found[kind] for kind in ('text', 'model_requested', 'output', 'code', 'cell_finished')} == {'DEBUG'}
    assert {found[kind] for kind in ('run_started', 'step_finished', 'answer', 'run_finished')} == {'INFO'}


async def test_the_library_is_quiet_by_default(caplog: pytest.LogCaptureFixture) -> None:
    await watch([ANSWER], LogEvents())
    assert caplog.records == []


async def test_the_level_of_the_room_takes_effect(caplog: pytest.LogCaptureFixture) -> None:
    configure_logging('agent=info')
    await watch([ANSWER], LogEvents())
    assert set(levels(caplog).values()) == {'INFO'}


async def test_a_run_reads_as_a_story(caplog: pytest.LogCaptureFixture) -> None:
    def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    configure_logging('agent=debug')
    result = await watch([code('1 / 0'), code('final_answer(double(4))')], LogEvents(), name='bob', tools=[double])
    text = '\n'.join(record.getMessage() for record in caplog.records)
    assert f'{result.run_id} bob: run_started scripted:script (scripted): x' in text
    assert 'step 1: cell_finished ZeroDivisionError: division by zero after' in text
    assert 'step 2: tool_called double with number' in text
    assert 'step 2: tool_returned double: ok after' in text
    assert 'step 2: answer 8' in text
    assert 'run_finished answer after 2 steps' in text


@pytest.mark.parametrize(
    ('kind', 'level'), [('retry', 'WARNING'), ('hook_failed', 'WARNING'), ('compacted', 'INFO'), ('thinking', 'DEBUG')]
)
def test_the_level_fits_what_happened(kind: str, level: str, caplog: pytest.LogCaptureFixture) -> None:
    configure_logging('debug')
    LogEvents()(sample(kind, 'something'))
    assert levels(caplog) == {kind: level}


async def test_a_run_that_fails_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ModelError):
        await watch([ModelError('no luck')], LogEvents())
    [record] = caplog.records
    assert record.levelname == 'ERROR'
    assert 'ModelError: no luck' in record.getMessage()


@pytest.mark.parametrize('logger', ['habilis.agent', 'my.program'])
def test_keys_are_never_logged_whatever_the_logger(logger: str, caplog: pytest.LogCaptureFixture) -> None:
    hide(['a hidden passphrase'])
    with caplog.at_level(logging.DEBUG, logger):
        for position in (0, LENGTH - 10):  # also where the message is cut in the middle of it
            filler = 'y' * position
            LogEvents(logger)(sample('text', f'{filler} {KEY} and a hidden passphrase'))
            LogEvents(logger)(sample('hook_failed', f'{filler} Authorization: Bearer {KEY}'))
    assert len(caplog.records) == 4
    assert 'sk-proj' not in caplog.text
    assert 'hidden pass' not in caplog.text


def test_a_logger_of_your_own_is_taken(caplog: pytest.LogCaptureFixture) -> None:
    mine = logging.getLogger('mine')
    with caplog.at_level(logging.INFO, 'mine'):
        LogEvents(mine)(sample('answer', '42'))
    assert [record.name for record in caplog.records] == ['mine']


def test_text_of_strangers_stays_on_one_short_line_and_is_no_format(caplog: pytest.LogCaptureFixture) -> None:
    configure_logging('debug')
    evil = 'ok\n2026-01-01 CRITICAL forged %s %(x)d\x1b[2J' + 'z' * 10_000
    LogEvents()(sample('output', evil, run='run\n1', agent='a\x1b[2Jb'))
    [record] = caplog.records
    message = record.getMessage()
    assert '\n' not in message
    assert '\x1b' not in message
    assert '%s %(x)d' in message
    assert len(message) < 2 * LENGTH
