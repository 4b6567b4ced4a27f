"""What is logged is shown on stderr, on lines of its own, also beside the live view; and never a key."""

import re

import pytest

from tests.cli.chat import code, script, streamed
from tests.cli.process import habilis
from tests.models.protocol_server import ProtocolServer
from tests.place import Place

UNKNOWN = 'habilis: HABILIS_MAXSTEPS is not a setting; did you mean HABILIS_MAX_STEPS?\n'
LOGGED = re.compile(r'\d\d:\d\d:\d\d (debug|info) habilis\.agent: (.*)')


def without_logs(stderr: str) -> list[str]:
    """The lines of the view, without what takes another time in each run."""
    shown = [line for line in stderr.splitlines() if not LOGGED.fullmatch(line) and 'waiting for data' not in line]
    return [re.sub(r'[0-9.]+ s', 's', line) for line in shown]


@pytest.mark.parametrize(
    'arguments',
    [
        ('run', 'Greet', '-q', '-m', 'scripted:script.jsonl'),
        ('demo', '1', '--scripted', '-q'),
        ('models',),
        ('models', 'list'),
        ('runs', 'list'),
        ('runs', 'resume', 'no-such-run'),
    ],
    ids=lambda arguments: ' '.join(arguments[:2]),
)
def test_a_variable_that_is_no_setting_is_warned_of_once(place: Place, arguments: tuple[str, ...]) -> None:
    script(place.folder, 'Hello.')
    place.environment(HABILIS_MAXSTEPS='1')
    assert habilis(*arguments).stderr.count(UNKNOWN) == 1


def test_a_resumed_run_warns_once(place: Place) -> None:
    model = script(place.folder, code('x = 1'), code('final_answer(x)'))
    habilis('run', 'Count', '-q', '-m', model, '--max-steps', '1', '--run-id', 'run-1')
    place.environment(HABILIS_MAXSTEPS='1')
    place.dotenv('HABILIS_MODLE=foo\n')
    done = habilis('runs', 'resume', 'run-1', '-q', '--max-steps', '5')
    assert (done.returncode, done.stdout) == (0, '1\n')
    assert done.stderr.count(UNKNOWN) == 1
    assert done.stderr.count('.env:HABILIS_MODLE is not a setting; did you mean HABILIS_MODEL?\n') == 1


@pytest.mark.parametrize('variable', [{'HABILIS_DEBUG': '1'}, {'LOG_LEVEL': 'DEBUG'}], ids=['debug', 'level'])
def test_everything_is_logged_and_the_view_stays_whole(place: Place, variable: dict[str, str]) -> None:
    model = script(
        place.folder, 'I compute two things.\n' + code('print(1, end="")\nprint(2)'), code('final_answer(3)')
    )
    plain = habilis('run', 'Count', '-m', model)
    place.environment(**variable)
    done = habilis('run', 'Count', '-m', model)
    assert done.stdout == '3\n'
    assert without_logs(done.stderr) == without_logs(plain.stderr)
    said = [found[2] for line in done.stderr.splitlines() if (found := LOGGED.fullmatch(line))]
    for event in ('run_started', 'text', 'code', 'output', 'cell_finished', 'answer', 'run_finished'):
        assert any(f': {event}' in line for line in said), event
    assert not LOGGED.search(plain.stderr)


def test_a_level_of_its_own_logs_less_also_in_a_quiet_run(place: Place) -> None:
    place.environment(LOG_LEVEL='agent=info')
    done = habilis('run', 'Count', '-q', '-m', script(place.folder, code('final_answer(3)')))
    assert ' info habilis.agent: ' in done.stderr
    assert ' debug ' not in done.stderr


def test_no_key_is_logged(place: Place, server: ProtocolServer) -> None:
    key = 'private-key-0123456789'
    place.environment(OPENAI_API_KEY=key, HABILIS_DEBUG='1')
    server.will_answer(streamed('The key is ', f'{key} and sk-proj-abcdefghijklmnop.'))
    url = server.base_url('openai')
    done = habilis('run', f'Tell {key}', '-q', '-m', 'openai:tiny', '--base-url', url)
    assert done.returncode == 0
    assert ' debug habilis.agent: ' in done.stderr
    assert key not in done.stderr
    assert 'sk-proj' not in done.stderr
