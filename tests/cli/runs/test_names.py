"""How a run is named: by its id, by the start of it, or as the last one."""

import json

from tests.cli.process import on_terminal
from tests.cli.runs.making import listed, make, runs
from tests.place import Place

COMMANDS = (
    ('show',),
    ('events',),
    ('calls',),
    ('export',),
    ('export', '--format', 'jsonl'),
    ('resume', '-q'),
    ('fork', '--at', '2', '--no-resume'),
)
"""Commands that take the id of a run, and more options."""


def test_a_run_is_named_by_any_start_of_its_id_that_no_other_run_has(place: Place) -> None:
    make(place, options=('--run-id', 'run-abc1'))
    make(place, options=('--run-id', 'run-abd2'))
    for name in ('run-abc1', 'run-abc', 'abc', 'run-abc1'):
        for command, *more in COMMANDS:
            done = runs(command, name, *more)
            assert done.returncode == 0, (command, name, done.stderr)
    assert json.loads(runs('show', 'abc', '--json').stdout)['run'] == 'run-abc1'
    assert runs('diff', 'abc', 'abd').returncode == 0
    assert runs('score', 'abd', '1').stderr == 'habilis: scored run-abd2: 1\n'


def test_the_start_of_several_ids_is_refused_with_their_titles(place: Place) -> None:
    for end in ('1', '2'):
        make(place, options=('--run-id', f'run-ab{end}'), task=f'Task {end}')
    for command in (('show', 'run-a'), ('rm', 'a', '--yes'), ('resume', 'run-'), ('approve', 'run-ab')):
        done = runs(*command)
        assert (done.returncode, done.stdout) == (1, ''), command
        head, *candidates = done.stderr.splitlines()
        assert head == f'habilis: {command[1]!r} is the start of 2 run ids; give more of one:'
        assert candidates == ['  run-ab2  Task 2', '  run-ab1  Task 1']
    assert len(listed()) == 2


def test_last_is_the_newest_run_of_this_user_unless_a_run_has_that_id(place: Place) -> None:
    assert "no such run: 'last'" in runs('show', 'last').stderr
    make(place, options=('--run-id', 'run-1'))
    make(place, options=('--run-id', 'run-2', '--user', 'ada'))
    assert json.loads(runs('show', 'last', '--json').stdout)['run'] == 'run-1'
    assert json.loads(runs('show', 'last', '--json', '--user', 'ada').stdout)['run'] == 'run-2'
    make(place, options=('--run-id', 'last'))
    make(place, options=('--run-id', 'run-3'))
    assert json.loads(runs('show', 'last', '--json').stdout)['run'] == 'last'
    assert runs('rm', 'last', '--yes').stderr == 'habilis: deleted 1 run: last (What is it?)\n'
    assert json.loads(runs('show', 'last', '--json').stdout)['run'] == 'run-3'


def test_the_start_of_an_id_never_finds_a_run_of_another_user(place: Place) -> None:
    make(place, options=('--run-id', 'run-secret', '--user', 'ada'))
    make(place, options=('--run-id', 'run-shown'))
    assert "no such run: 'run-sec'" in runs('show', 'run-sec').stderr
    done = runs('show', 'run-s', '--json')
    assert json.loads(done.stdout)['run'] == 'run-shown'


def test_a_list_fits_the_width_of_a_terminal(place: Place) -> None:
    task = '東京の天気を教えてください、そして大阪と名古屋の天気も教えてください。' * 3
    run = make(place, task=task)
    for columns in (80, 60):
        with on_terminal('runs', 'list', columns=columns) as terminal:
            shown = terminal.wait_for('…')
            assert terminal.exit_code() == 0
        row = shown.splitlines()[-1]
        assert row.startswith(('\x1b[', run))
        assert '東京の天気' in row
        assert width(row) <= columns


def width(row: str) -> int:
    from rich.text import Text

    return Text.from_ansi(row).cell_len
