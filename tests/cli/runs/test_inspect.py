"""`habilis runs list`, `show`, `events`, `calls` and `path`: what was done, from the records alone."""

import json
import shlex
import signal
import sqlite3
import subprocess
import sys

import pytest

from tests.cli.chat import code, script
from tests.cli.process import COMMAND, environment, habilis, on_terminal
from tests.cli.runs.making import FLOW, PROGRAM, journal, listed, make, runs
from tests.place import Place

ESCAPE = 'Clear \x1b[2J\x1b]0;owned\x07 it\u202e'


def program(place: Place, text: str, name: str = 'program') -> None:
    (place.folder / f'{name}.py').write_text(text)
    subprocess.run([sys.executable, f'{name}.py'], check=True, capture_output=True, env=environment())


# list -----------------------------------------------------------------------------------------------------------------


def test_an_empty_list_says_how_to_make_a_run_and_makes_no_journal(place: Place) -> None:
    done = runs('list')
    assert (done.returncode, done.stdout) == (0, '')
    assert done.stderr == 'habilis: no runs yet; start one: habilis run "What is the 100th prime?"\n'
    assert not journal(place).exists()
    assert listed() == []


def test_the_list_has_the_newest_first_with_state_age_and_title(place: Place) -> None:
    first, second = make(place, task='The first'), make(place, options=('--max-steps', '1'), task='The second')
    done = runs('list')
    head, one, two = done.stdout.splitlines()
    assert head.split() == ['RUN', 'STATUS', 'AGE', 'TITLE']
    assert one.split()[:2] == [second, 'stopped']
    assert two.split()[:2] == [first, 'done']
    assert two.endswith((' now  The first', ' ago  The first'))
    assert [run['steps'] for run in listed()] == [1, 3]


def test_the_list_can_be_narrowed(place: Place) -> None:
    first = make(place, options=('--session', 's'))
    second = make(place, options=('--max-steps', '1'))
    assert [run['run'] for run in listed('--status', 'done')] == [first]
    assert [run['run'] for run in listed('--session', 's')] == [first]
    assert [run['run'] for run in listed('--limit', '1')] == [second]
    assert '1 more; use --limit 2 to list all' in runs('list', '--limit', '1').stderr
    assert runs('list', '--status', 'failed').stderr == 'habilis: no matching runs\n'


def test_runs_of_another_user_are_not_there(place: Place) -> None:
    run = make(place, options=('--user', 'ada'))
    assert listed() == []
    assert [each['run'] for each in listed('--user', 'ada')] == [run]
    commands = [
        ('show', run),
        ('events', run),
        ('calls', run),
        ('resume', run),
        ('approve', run),
        ('deny', run),
        ('answer', run, '1'),
        ('fork', run, '--at', '1'),
        ('diff', run, run),
        ('export', run),
        ('export', run, '--format', 'jsonl'),
        ('score', run, '1'),
        ('rm', run, '--yes'),
    ]
    for command in commands:
        done = runs(*command, '--user', 'bob')
        assert (done.returncode, done.stdout) == (1, ''), command
        assert done.stderr == f'habilis: no such run: {run!r}; `habilis runs list --user bob` lists all runs\n'
    place.environment(HABILIS_USER='ada')
    assert [each['run'] for each in listed()] == [run]


def test_on_a_terminal_the_list_is_a_table_with_escaped_control_sequences(place: Place) -> None:
    make(place, task=ESCAPE)
    with on_terminal('runs', 'list') as terminal:
        shown = terminal.wait_for('Clear \\x1b[2J')
        assert 'STATUS' in shown
        assert '\x1b[2J' not in shown
        assert terminal.exit_code() == 0


# show -----------------------------------------------------------------------------------------------------------------


def test_a_run_is_shown_step_by_step(place: Place) -> None:
    run = make(place)
    done = runs('show', run)
    assert done.returncode == 0
    text = done.stdout
    assert text.startswith(f'{run} · done · agent · ')
    parts = ['What is it?', 'step 1', 'I compute.', 'x = 6 * 7', '43', 'step 2', 'y = x * 2', '84', 'answer', '126']
    after = text.index('What is it?')  # not in the first line, whose time has numbers too
    for part in parts:
        after = text.index(part, after)


def test_show_has_all_of_it_as_json(place: Place) -> None:
    shown = json.loads(runs('show', make(place), '--json').stdout)
    (agent,) = shown['agents']
    assert (shown['status'], agent['task'], agent['answer']) == ('done', 'What is it?', '126')
    codes = [step['code'] for step in agent['steps']]
    assert codes == ['x = 6 * 7\nprint(x + 1)', 'y = x * 2\nprint(y)', 'final_answer(x + y)']
    assert agent['steps'][0]['stdout'] == '43\n'


def test_one_step_is_shown_whole(place: Place) -> None:
    run = make(place, code("print('a' * 3000 + 'MID' + 'DLE' + 'b' * 3000)"), code('final_answer(1)'))
    assert 'MIDDLE' not in runs('show', run).stdout
    assert 'characters omitted; use --step to show them' in runs('show', run).stdout
    assert 'MIDDLE' in runs('show', run, '--step', '1').stdout
    assert json.loads(runs('show', run, '--step', '2', '--json').stdout)['code'] == 'final_answer(1)'
    assert json.loads(runs('show', run, '--step', 'agent#1/cell#2').stdout.partition(': ')[2])['answered'] is True
    missing = runs('show', run, '--step', '7')
    assert (missing.returncode, missing.stderr) == (1, f'habilis: {run} has no step 7; it has 2 steps\n')


def test_an_error_of_the_code_is_shown(place: Place) -> None:
    shown = runs('show', make(place, code('1 / 0'), code('final_answer(1)'))).stdout
    assert 'ZeroDivisionError: division by zero' in shown


def test_a_question_is_shown_with_how_to_answer_it(place: Place) -> None:
    run = make(place, code("ask_user('Which colour?')"), 'never said')
    shown = runs('show', run).stdout
    assert 'question: Which colour?' in shown
    assert f'answer with: habilis runs resume {run} --answer TEXT' in shown


def test_an_approval_is_shown_with_how_to_give_it(place: Place) -> None:
    program(place, PROGRAM)
    shown = runs('show', 'run-send').stdout
    assert 'question: May send be called?' in shown
    assert 'to Ada' in shown
    assert "  send(text='to Ada')\n  called by this code:\n    print(send('to ' + name))\n" in shown
    assert '  approve with: habilis runs approve run-send --app program:agent\n' in shown
    assert '  or deny with: habilis runs deny run-send --app program:agent\n' in shown


def test_a_flow_is_shown_as_a_tree_of_steps(place: Place) -> None:
    program(place, FLOW)
    shown = runs('show', 'run-flow').stdout
    assert 'run-flow · waiting · flow __main__:publish' in shown
    assert '  fetch#1: done' in shown
    assert '  approval#1: waiting' in shown
    assert 'question: Publish NEWS?' in shown
    steps = json.loads(runs('show', 'run-flow', '--json').stdout)['steps']
    assert [step['state'] for step in steps] == ['done', 'waiting']


def test_what_a_stranger_wrote_is_not_obeyed_by_the_terminal(place: Place) -> None:
    run = make(place, code(r"print('\x1b[2J\x9b31m')" + '\nfinal_answer(1)'), task=ESCAPE)
    with on_terminal('runs', 'show', run) as terminal:
        shown = terminal.wait_for('answer')
        assert '\\x1b[2J' in shown
        assert '\x1b[2J' not in shown
        assert '\x9b' not in shown
        assert '\x1b]0' not in shown
    assert '\x1b' not in runs('show', run).stdout
    assert '\x1b' not in runs('events', run).stdout


def damage(place: Place, run: str, seq: int) -> None:
    with sqlite3.connect(journal(place)) as connection:
        connection.execute("UPDATE records SET line = '00000000 {}' WHERE run = ? AND seq = ?", (run, seq))
    connection.close()


def test_a_damaged_record_is_named_and_what_is_before_it_is_shown(place: Place) -> None:
    run = make(place)
    damage(place, run, 5)
    done = runs('show', run)
    assert done.returncode == 1
    assert 'x = 6 * 7' in done.stdout
    assert 'y = x * 2' not in done.stdout
    assert f'record 5 of {run} is damaged' in done.stderr
    assert f'habilis runs fork {run} --before 5' in done.stderr
    events = runs('events', run)
    assert (events.returncode, len(events.stdout.splitlines())) == (1, 4)
    assert f'record 5 of {run} is damaged' in events.stderr
    assert listed()[0]['steps'] is None
    elsewhere = runs('show', run, '--journal', str(journal(place))).stderr
    command = shlex.split(elsewhere.splitlines()[-1].partition('fork the run before it: habilis ')[2])
    assert habilis(*command).returncode == 0
    assert len(listed()) == 2


def test_a_damaged_blob_is_named_too(place: Place) -> None:
    run = make(place, code("print('z' * 90000)"), code('final_answer(1)'))
    with sqlite3.connect(journal(place)) as connection:
        connection.execute("UPDATE blobs SET data = X'00' WHERE instr(data, X'7a7a7a7a') > 0")
    connection.close()
    done = runs('show', run)
    assert done.returncode == 1
    assert f'record 4 of {run} is damaged' in done.stderr
    assert 'step 2' in done.stdout


# events ---------------------------------------------------------------------------------------------------------------


def test_events_are_the_records_in_their_order(place: Place) -> None:
    run = make(place)
    lines = runs('events', run).stdout.splitlines()
    kinds = [(line.split()[3], line.split()[4]) for line in lines]
    assert kinds[:2] == [('opened', 'agent#1'), ('noted', 'agent#1')]
    assert kinds[2:4] == [('done', 'agent#1/ask#1'), ('done', 'agent#1/cell#1')]
    assert kinds[-1] == ('ended', '/')
    records = [json.loads(line) for line in runs('events', run, '--json').stdout.splitlines()]
    assert [record['seq'] for record in records] == list(range(1, len(lines) + 1))


def test_follow_ends_with_the_run_and_with_ctrl_c(place: Place) -> None:
    assert runs('events', make(place), '--follow').stdout.splitlines()[-1].split()[3] == 'ended'
    model = script(place.folder, code('x = 1'), code("print('loop' + 'ing')\nwhile True: pass"))
    worker = subprocess.Popen(
        [*COMMAND, 'run', 'Loop', '--model', model, '--run-id', 'run-loop'],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    follower = None
    try:
        assert worker.stderr
        while 'looping' not in (line := worker.stderr.readline()):
            assert line
        assert listed()[0]['status'] == 'running'
        follower = subprocess.Popen(
            [*COMMAND, 'runs', 'events', 'run-loop', '--follow'],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            text=True,
        )
        assert follower.stdout
        assert 'opened' in follower.stdout.readline()
        for refused in (('rm', 'run-loop', '--yes'), ('resume', 'run-loop'), ('score', 'run-loop', '1')):
            done = runs(*refused)
            assert (done.returncode, done.stdout) == (1, '')
            assert 'is being executed' in done.stderr
        follower.send_signal(signal.SIGINT)
        _, errors = follower.communicate(timeout=600)
        assert (follower.returncode, errors) == (130, '')
    finally:
        for process in (worker, follower):
            if process is not None:
                process.kill()
                process.communicate()


# calls ----------------------------------------------------------------------------------------------------------------


def test_every_tool_call_has_a_row(place: Place) -> None:
    run = make(
        place, code("notify_user('hello')"), code('notify_user()\n'), code("notify_user(text='bye')\nfinal_answer(1)")
    )
    calls = json.loads(runs('calls', run, '--json').stdout)
    assert [(call['step'], call['tool'], call['arguments'], call['decision'], call['ok']) for call in calls] == [
        (1, 'notify_user', {'text': 'hello'}, 'allowed', True),
        (2, 'notify_user', {}, 'invalid', False),
        (3, 'notify_user', {'text': 'bye'}, 'allowed', True),
    ]
    assert calls[0]['at'] > 1e9
    assert 'ToolArgumentsError' in calls[1]['error']
    head, *rows = runs('calls', run).stdout.splitlines()
    assert head.split() == ['TIME', 'STEP', 'TOOL', 'ARGUMENTS', 'DECISION', 'RESULT', 'SECONDS']
    assert len(rows) == 3
    assert "text='hello'" in rows[0]


def test_a_call_that_waits_for_approval_has_a_row_too(place: Place) -> None:
    program(place, PROGRAM)
    (call,) = json.loads(runs('calls', 'run-send', '--json').stdout)
    assert (call['tool'], call['arguments']) == ('send', {'text': 'to Ada'})
    assert (call['decision'], call['ok']) == ('waiting', False)


def test_a_run_without_calls_says_so(place: Place) -> None:
    run = make(place)
    assert runs('calls', run).stderr == f'habilis: {run} has no tool calls\n'


# path -----------------------------------------------------------------------------------------------------------------


def test_path_prints_where_the_journal_is_without_passwords(place: Place) -> None:
    assert runs('path').stdout == f'{journal(place)}\n'
    assert runs('path', '--journal', 'here.db').stdout == f'{place.folder / "here.db"}\n'
    assert not (place.folder / 'here.db').exists()
    place.environment(HABILIS_JOURNAL='redis://:secret@127.0.0.1:1/0')
    assert 'secret' not in runs('path').stdout


@pytest.mark.parametrize('command', ['list', 'show', 'resume', 'approve', 'fork', 'export', 'prune'])
def test_each_command_explains_itself(command: str) -> None:
    done = habilis('runs', command, '--help')
    assert done.returncode == 0
    assert '--journal' in done.stdout
