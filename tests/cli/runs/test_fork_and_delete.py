"""`habilis runs fork`, `score`, `delete` and `prune`."""

import json
import sqlite3

import pytest

from tests.cli.chat import code, script
from tests.cli.process import on_terminal
from tests.cli.runs.making import journal, listed, make, runs
from tests.place import Place

# fork -----------------------------------------------------------------------------------------------------------------


def test_a_fork_continues_from_a_step_with_the_variables_of_that_step(place: Place) -> None:
    run = make(place)
    other = script(place.folder, 'x', 'x', code('final_answer((x, y))'), name='other')
    made = runs('fork', run, '--at', '3', '--no-resume')
    assert (made.returncode, made.stderr) == (0, '')
    fork = made.stdout.strip()
    assert fork != run
    assert [(each['run'], each['status'], each['parent'], each['steps']) for each in listed()] == [
        (fork, 'stopped', run, 2),
        (run, 'done', '', 3),
    ]
    assert runs('resume', fork, '-q', '--model', other).stdout == '(42, 84)\n'
    assert runs('resume', run, '-q').stdout == '126\n'


def test_a_fork_is_resumed_at_once(place: Place) -> None:
    run = make(place)
    script(place.folder, *('x' * 1, 'x'), code('final_answer(x - 2)'))
    done = runs('fork', run, '--at', '3')
    assert (done.returncode, done.stdout) == (0, '40\n')
    assert done.stderr.splitlines()[0].startswith('run-')


def test_a_fork_runs_other_code_or_another_task(place: Place) -> None:
    run = make(place)
    script(place.folder, 'x', 'x', code('final_answer((x, y))'))
    assert runs('fork', run, '--at', '2', '--edit', 'y = x + 1', '-q').stdout == '(42, 43)\n'
    script(place.folder, code('final_answer(1)'))
    assert runs('fork', run, '--at', 'agent#1', '--edit', 'Something else', '-q').stdout == '1\n'
    assert listed()[0]['title'] == 'Something else'
    assert runs('fork', run, '--before', '3', '--edit', 'x = 1').returncode == 2
    assert runs('fork', run, '--at', 'agent#1/cell#1', '--edit', 'x = 1').returncode == 1


def test_a_fork_at_the_first_step_begins_anew(place: Place) -> None:
    run = make(place)
    script(place.folder, code("final_answer('x' in globals())"))
    assert runs('fork', run, '--at', '1', '-q').stdout == 'False\n'


def test_a_fork_after_the_last_step_can_be_resumed(place: Place) -> None:
    run = make(place, options=('--max-steps', '2'))
    fork = runs('fork', run, '--at', '3', '--no-resume').stdout.strip()
    assert runs('resume', fork, '-q').stdout == '126\n'


@pytest.mark.parametrize('at', ['0', '5', 'agent#1/ask#9', '-1'])
def test_a_step_that_is_not_there_is_refused(place: Place, at: str) -> None:
    done = runs('fork', make(place), f'--at={at}')
    assert (done.returncode, done.stdout) == (1, '')
    assert 'no step' in done.stderr
    assert len(listed()) == 1


def test_a_fork_without_a_place_repeats_the_last_step(place: Place) -> None:
    run = make(place)
    script(place.folder, *('x' * 1, 'x'), code('final_answer(x - 2)'))
    assert runs('fork', 'last', '-q').stdout == '40\n'
    assert runs('fork', run, '--at', '1', '--before', '2').returncode == 2
    assert runs('fork', run, '--before', '99').returncode == 1
    assert runs('fork', run, '--before', '0').returncode == 1


def test_a_damaged_run_is_forked_before_the_damage(place: Place) -> None:
    run = make(place)
    with sqlite3.connect(journal(place)) as connection:
        connection.execute("UPDATE records SET line = 'x' WHERE run = ? AND seq = 5", (run,))
    connection.close()
    assert runs('resume', run).returncode == 1
    done = runs('fork', run, '--before', '4', '-q')
    assert (done.returncode, done.stdout) == (0, '126\n')
    assert runs('fork', run, '--before', '6').returncode == 1


# score ----------------------------------------------------------------------------------------------------------------


def test_a_score_becomes_the_reward_and_the_run_stays_as_it_was(place: Place) -> None:
    run = make(place)
    assert runs('score', run, '0.25').returncode == 0
    rows = [json.loads(line) for line in runs('export', run, '--format', 'jsonl').stdout.splitlines()]
    assert [row['reward'] for row in rows] == [None, None, 0.25]
    assert listed()[0]['status'] == 'done'
    assert runs('resume', run, '-q').stdout == '126\n'
    assert 'score: 0.25' in runs('show', run).stdout
    for nonsense in ('nan', 'inf', 'good'):
        assert runs('score', run, nonsense).returncode == 2


# delete ---------------------------------------------------------------------------------------------------------------


def test_runs_are_deleted_after_asking(place: Place) -> None:
    run = make(place)
    refused = runs('rm', run)
    assert (refused.returncode, 'use --yes' in ' '.join(refused.stderr.split())) == (2, True)
    with on_terminal('runs', 'rm', run) as terminal:
        terminal.wait_for(f'Delete {run} (What is it?) permanently? [y/N]')
        terminal.type('n\n')
        terminal.wait_for('nothing deleted')
        assert terminal.exit_code() == 1
    assert len(listed()) == 1
    assert runs('rm', run, run, '--yes').stderr == f'habilis: deleted 1 run: {run} (What is it?)\n'
    assert listed() == []


def test_if_one_is_missing_none_is_deleted(place: Place) -> None:
    run = make(place)
    done = runs('rm', run, 'run-x', '--yes')
    assert (done.returncode, "no such run: 'run-x'" in done.stderr) == (1, True)
    assert len(listed()) == 1


# prune ----------------------------------------------------------------------------------------------------------------


def aged(place: Place) -> tuple[str, str, str]:
    """A run that is done, one that waits, and one that was stopped; all long ago."""
    done = make(place)
    waiting = make(place, code("ask_user('Which?')"), 'never said')
    stopped = make(place, options=('--max-steps', '1'))
    with sqlite3.connect(journal(place)) as connection:
        rows = connection.execute('SELECT run, info FROM runs').fetchall()
        for run, text in rows:
            info = json.loads(text) | {'updated': 1.7e9}
            connection.execute('UPDATE runs SET info = ? WHERE run = ?', (json.dumps(info), run))
    connection.close()
    return done, waiting, stopped


def test_prune_says_what_it_would_delete_and_leaves_what_waits(place: Place) -> None:
    done, waiting, stopped = aged(place)
    young = make(place)
    tried = runs('prune', '--older-than', '30d', '--dry-run')
    assert (tried.returncode, tried.stderr) == (0, 'habilis: would delete 2 runs\n')
    assert done in tried.stdout
    assert stopped in tried.stdout
    assert waiting not in tried.stdout
    assert len(listed()) == 4
    assert runs('prune', '--older-than', '30d').returncode == 2
    pruned = runs('prune', '--older-than', '30d', '--yes').stderr
    assert pruned == f'habilis: deleted 2 runs: {stopped} (What is it?), {done} (What is it?)\n'
    assert [run['run'] for run in listed()] == [young, waiting]
    assert runs('prune', '--older-than', '30d', '--yes').stderr == 'habilis: no runs are that old; nothing deleted\n'
    assert waiting in runs('prune', '--older-than', '1h', '--status', 'waiting', '--yes').stdout
    assert [run['run'] for run in listed()] == [young]


def test_prune_keeps_the_newest_and_only_takes_the_state_that_is_named(place: Place) -> None:
    done, _, stopped = aged(place)
    kept = runs('prune', '--older-than', '1m', '--keep', '1', '--dry-run').stdout
    assert stopped not in kept
    assert done in kept
    named = runs('prune', '--older-than', '1m', '--status', 'stopped', '--dry-run').stdout
    assert stopped in named
    assert done not in named


@pytest.mark.parametrize('time', ['', '30', '-1d', '1w', '1e9d'])
def test_a_time_that_is_none_is_wrong_usage(time: str) -> None:
    done = runs('prune', f'--older-than={time}', '--dry-run')
    assert (done.returncode, done.stdout) == (2, '')
    assert 'is not an age' in done.stderr


def test_json_of_prune_and_rm_has_the_ids(place: Place) -> None:
    done, waiting, stopped = aged(place)
    wanted = ('prune', '--older-than', '30d', '--json')
    assert json.loads(runs(*wanted, '--dry-run').stdout) == [stopped, done]
    assert json.loads(runs(*wanted, '--yes').stdout) == [stopped, done]
    assert json.loads(runs(*wanted, '--yes').stdout) == []
    assert json.loads(runs('rm', waiting, '--yes', '--json').stdout) == [waiting]
