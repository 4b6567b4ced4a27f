"""Going on with runs: after a limit, a question, Ctrl-C, `kill -9`; with what was said when they began."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator

import pytest

from tests.cli.chat import code, script, streamed
from tests.cli.process import COMMAND, PATIENCE, environment, habilis, on_terminal
from tests.cli.runs.making import SUM, journal, listed, make, runs
from tests.models.protocol_server import ProtocolServer, wait_for_requests
from tests.place import Place

LABEL = 'habilis: SCRIPTED: scripted:script replies from a file; no model is used\n'


@contextlib.contextmanager
def begun(*arguments: str) -> 'Generator[subprocess.Popen[str]]':
    """`habilis run` in a process of its own, killed at the end."""
    with subprocess.Popen(
        [*COMMAND, 'run', 'Do it', *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


# After kill -9 --------------------------------------------------------------------------------------------------------


def test_a_run_killed_in_the_middle_of_its_code_is_finished_by_resume(place: Place) -> None:
    waiting = "open('mark', 'a').write('x')\nimport os\nwhile not os.path.exists('go'): pass\ny = x + 1\nprint(y)"
    model = script(place.folder, code('x = 41'), code(waiting), code('final_answer((x, y))'))
    mark = place.folder / 'data' / 'mark'
    with begun('-m', model, '-w', 'data', '--create', '--run-id', 'run-1'):
        wait_until(lambda: mark.exists() and mark.read_text() == 'x')
    assert [(run['run'], run['status'], run['steps']) for run in listed()] == [('run-1', 'interrupted', 2)]
    assert 'interrupted; resume with: habilis runs resume run-1' in runs('show', 'run-1').stdout
    (place.folder / 'data' / 'go').touch()
    elsewhere = place.folder / 'elsewhere'
    elsewhere.mkdir()
    os.chdir(elsewhere)
    done = runs('resume', 'run-1')
    assert (done.returncode, done.stdout) == (0, '(41, 42)\n'), done.stderr
    assert mark.read_text() == 'xx'
    assert listed()[0]['status'] == 'done'


def test_no_reply_of_the_model_is_asked_for_again(place: Place, server: ProtocolServer) -> None:
    server.will_answer(streamed(code('x = 41\nprint(x)')), streamed('Let me ', 'think', silent_after=1))
    options = ('-m', 'tiny', '--base-url', server.base_url('openai'), '--temperature', '0.5')
    with begun(*options, '--run-id', 'run-1'):
        list(wait_for_requests(server, 2, PATIENCE))
    server.will_answer(streamed(code('final_answer(x + 1)')))
    done = runs('resume', 'run-1')
    assert (done.returncode, done.stdout) == (0, '42\n')
    assert 'tiny (as before)' in done.stderr, 'nobody has passed --model'
    assert len(server.requests) == 3
    again = server.last.json
    assert (again['model'], again['temperature']) == ('tiny', 0.5)
    assert again['messages'] == server.requests[1].json['messages']


# After Ctrl-C, and at limits ------------------------------------------------------------------------------------------


def test_ctrl_c_says_how_to_resume_and_nothing_is_lost(place: Place) -> None:
    waiting = "import os\nprint('wait' + 'ing')\nwhile not os.path.exists('go'): pass"
    model = script(place.folder, code('x = 41'), code(waiting), code('final_answer(x + 1)'))
    with begun('-m', model, '-w', 'data', '--create', '--run-id', 'run-1') as process:
        assert process.stderr
        while line := process.stderr.readline():
            if line == 'waiting\n':
                break
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=PATIENCE)
    assert (process.returncode, bool(line)) == (130, True), rest
    assert rest.splitlines()[-1] == 'habilis: interrupted after 1 step; resume with: habilis runs resume run-1'
    assert listed()[0]['status'] == 'stopped'
    (place.folder / 'data' / 'go').touch()
    done = runs('resume', 'run-1', '--quiet')
    assert (done.returncode, done.stdout, done.stderr) == (0, '42\n', LABEL)


def test_ctrl_c_during_a_resume_says_how_to_resume(place: Place) -> None:
    run = make(place, code('x = 1'), code("print('loop' + 'ing')\nwhile True: pass"), options=('--max-steps', '1'))
    with on_terminal('runs', 'resume', run) as terminal:
        terminal.wait_for('looping')
        terminal.type('\x03')
        terminal.wait_for(f'resume with: habilis runs resume {run}', seconds=20)
        assert terminal.exit_code() == 130


def test_a_limit_gives_as_much_again_or_as_much_as_is_said(place: Place) -> None:
    run = make(place, options=('--max-steps', '1'))
    again = runs('resume', run)
    assert again.returncode == 3
    assert again.stderr.splitlines()[-1] == (
        f'habilis: stopped at the limit of 1 step without an answer; resume with: habilis runs resume {run}'
    )
    done = runs('resume', run, '--max-steps', '5', '--json', '--quiet')
    assert done.returncode == 0
    assert (json.loads(done.stdout)['output'], len(json.loads(done.stdout)['steps'])) == (126, 3)
    once_more = runs('resume', run)
    assert (once_more.returncode, once_more.stdout) == (0, '126\n')


def test_a_model_that_failed_is_asked_again(place: Place) -> None:
    model = script(place.folder, SUM[0])
    failed = habilis('run', 'Add', '-q', '-m', model, '--run-id', 'run-1')
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-2:] == [
        'habilis: the run is recorded; resume with: habilis runs resume run-1',
        'habilis: scripted:script has no more replies: request 2, but the script has only 1',
    ]
    assert listed()[0]['status'] == 'failed'
    script(place.folder, *SUM)
    assert runs('resume', 'run-1', '-q').stdout == '126\n'


def test_another_task_of_the_session_continues_from_the_last(place: Place, server: ProtocolServer) -> None:
    options = ('-q', '-m', 'tiny', '--base-url', server.base_url('openai'), '--session', 's')
    server.will_answer(streamed('Blue.'), streamed('I said blue.'))
    habilis('run', 'Name a colour', *options)
    assert habilis('run', 'What did you say?', *options).stdout == 'I said blue.\n'
    said = [message['content'] for message in server.last.json['messages'][1:]]
    assert 'Name a colour' in str(said[0])
    assert 'Blue.' in str(said[1])
    assert [run['session'] for run in listed('--session', 's')] == ['s', 's']


def test_a_journal_elsewhere_is_named_in_what_is_advised(place: Place) -> None:
    model = script(place.folder, *SUM)
    stopped = habilis(
        'run', 'Add', '-q', '-m', model, '--max-steps', '2', '--run-id', 'r', '--journal', 'my runs.db', '--user', 'ada'
    )
    resume = "habilis runs resume r --journal 'my runs.db' --user ada"
    assert stopped.stderr.endswith(f'resume with: {resume}\n')
    assert not journal(place).exists()
    assert runs('resume', 'r', '-q').returncode == 1
    done = runs('resume', 'r', '--journal', 'my runs.db', '--user', 'ada', '-q')
    assert (done.returncode, done.stdout) == (0, '126\n')


def test_without_a_journal_nothing_is_kept_and_nothing_is_advised(place: Place) -> None:
    model = script(place.folder, *SUM)
    stopped = habilis('run', 'Add', '-q', '-m', model, '--max-steps', '1', '--journal', 'off')
    assert stopped.returncode == 3
    assert stopped.stderr.endswith('without an answer; raise the limit with --max-steps 2\n')
    assert not journal(place).exists()
    done = runs('list', '--journal', 'off')
    assert (done.returncode, done.stdout) == (1, '')
    assert 'the journal is set to off' in done.stderr


def test_a_name_that_is_taken_is_refused(place: Place) -> None:
    make(place, options=('--run-id', 'run-1'))
    again = habilis('run', 'Add', '-q', '-m', script(place.folder, *SUM), '--run-id', 'run-1')
    assert (again.returncode, again.stdout) == (1, '')
    assert again.stderr == f'{LABEL}habilis: the run run-1 exists already; resume it, or choose another id\n'


# Questions ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def asking(place: Place) -> str:
    """A run that asks its user something."""
    asked = code("colour = ask_user('Which colour?')")
    return make(place, asked, code("final_answer('painted')"))


def test_a_question_is_answered_with_resume(asking: str) -> None:
    assert listed()[0]['status'] == 'waiting'
    unanswered = runs('resume', asking)
    assert (unanswered.returncode, unanswered.stdout) == (4, '')
    assert unanswered.stderr.splitlines() == [
        'habilis: the agent asks: Which colour?',
        f'habilis: answer with: habilis runs resume {asking} --answer TEXT',
    ]
    done = runs('resume', asking, '--answer', 'blue')
    assert (done.returncode, done.stdout) == (0, 'painted\n')
    assert 'message\n    blue' in runs('show', asking).stdout


@pytest.mark.parametrize('answer', ['blue', '"blue"'])
def test_a_question_is_answered_with_answer_too(asking: str, answer: str) -> None:
    refused = runs('answer', asking, answer, '--no-resume')
    assert refused.returncode == 2
    done = runs('answer', asking, answer)
    assert (done.returncode, done.stdout) == (0, 'painted\n')
    assert 'message\n    blue' in runs('show', asking).stdout


def test_a_person_at_the_terminal_is_asked(asking: str) -> None:
    with on_terminal('runs', 'resume', asking, '--quiet') as terminal:
        terminal.wait_for('Which colour?\n> ')
        terminal.type('blue\n')
        terminal.wait_for('painted')
        assert terminal.exit_code() == 0


def test_ctrl_d_at_the_question_ends_its_line_and_does_not_ask_again(asking: str) -> None:
    with on_terminal('runs', 'resume', asking) as terminal:
        terminal.wait_for('Which colour?\n> ')
        terminal.type('\x04')
        assert terminal.wait_for('habilis: answer with').startswith('\n')
        assert terminal.exit_code() == 4


def test_a_question_that_was_asked_is_no_error_of_its_step(asking: str) -> None:
    done = runs('resume', asking, '--answer', 'blue', '--json')
    assert [step['error'] for step in json.loads(done.stdout)['steps']] == [None, None]
    shown = runs('show', asking).stdout
    assert "ask_user(question='Which colour?') → asked" in shown
    assert 'NeedsAnswer' not in shown
    assert 'NeedsAnswer' not in str(
        [step['error'] for step in json.loads(runs('show', asking, '--json').stdout)['steps']]
    )


def test_a_run_that_has_ended_takes_no_message(place: Place) -> None:
    run = make(place)
    told = runs('resume', run, '--answer', 'more')
    assert (told.returncode, told.stdout, told.stderr.count('\n')) == (2, '', 1)
    assert f'{run} already has an answer, so --answer is not used' in told.stderr
    assert runs('resume', run, '-q').stdout == '126\n'


def test_what_asks_nothing_cannot_be_answered(place: Place) -> None:
    run = make(place)
    for command in (('approve', run), ('deny', run), ('answer', run, '1')):
        done = runs(*command)
        assert (done.returncode, done.stdout) == (1, '')
        assert done.stderr == f'habilis: {run} has no open question\n'
