"""What goes wrong, and how it is told: in one line, without a traceback, and without harm to what is kept."""

import ctypes
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.cli.chat import code, script
from tests.cli.process import COMMAND, environment, habilis
from tests.cli.runs.making import journal, listed, make, runs
from tests.place import Place

COMMANDS = [
    ('show', 'run-x'),
    ('events', 'run-x'),
    ('calls', 'run-x'),
    ('resume', 'run-x'),
    ('approve', 'run-x'),
    ('answer', 'run-x', '1'),
    ('fork', 'run-x', '--at', '1'),
    ('diff', 'run-x', 'run-y'),
    ('export', 'run-x'),
    ('score', 'run-x', '1'),
    ('rm', 'run-x', '--yes'),
]


@pytest.mark.parametrize('command', COMMANDS, ids=lambda command: command[0])
def test_a_run_that_is_not_there_is_named_and_no_journal_is_made(place: Place, command: tuple[str, ...]) -> None:
    done = runs(*command)
    assert (done.returncode, done.stdout) == (1, '')
    assert done.stderr == "habilis: no such run: 'run-x'; `habilis runs list` lists all runs\n"
    assert not journal(place).exists()


@pytest.mark.parametrize(
    'arguments',
    [
        (),
        ('show',),
        ('list', '--status', 'odd'),
        ('list', '--limit', '0'),
        ('resume', 'run-x', '--on-change', 'maybe'),
        ('resume', 'run-x', '--max-steps', '0'),
        ('prune',),
        ('nonsense',),
    ],
)
def test_nonsense_is_wrong_usage(arguments: tuple[str, ...]) -> None:
    done = runs(*arguments)
    assert done.returncode == 2
    assert 'Traceback' not in done.stderr


@pytest.mark.parametrize('name', ['../../etc/passwd', '\x1b[2J', 'a b', '0' * 5000, "'; DROP TABLE runs; --"])
def test_a_weird_name_is_only_a_name(place: Place, name: str) -> None:
    make(place)
    done = runs('show', name)
    assert (done.returncode, done.stdout, done.stderr.count('\n')) == (1, '', 1)
    assert '\x1b' not in done.stderr
    assert len(listed()) == 1


@pytest.mark.parametrize('where', ['ftp://nowhere', 'nothing', '', 'sqlite:'])
def test_a_place_that_is_none_is_named(where: str) -> None:
    done = runs('list', '--journal', where)
    assert (done.returncode, done.stdout) == (2, '')
    assert 'Error: Invalid value: ' in done.stderr


@pytest.mark.parametrize('text', [b'this is no database' * 100, b'SQLite format 3\0' + b'\xff' * 5000])
def test_a_file_that_is_no_journal_is_left_alone(place: Place, text: bytes) -> None:
    file = place.folder / 'broken.db'
    file.write_bytes(text)
    for command in (('list',), ('show', 'run-x')):
        done = runs(*command, '--journal', 'broken.db')
        assert (done.returncode, done.stdout, done.stderr.count('\n')) == (1, '', 1)
        assert 'broken.db' in done.stderr
    assert file.read_bytes() == text


def test_a_damaged_description_is_named_and_the_other_runs_are_listed(place: Place) -> None:
    run, other = make(place), make(place)
    with sqlite3.connect(journal(place)) as connection:
        connection.execute("UPDATE runs SET info = '{' WHERE run = ?", (run,))
    connection.close()
    shown = runs('show', run)
    assert (shown.returncode, shown.stdout) == (1, '')
    assert shown.stderr == 'habilis: the info of a run is damaged: {\n'
    listed = runs('list')
    assert listed.returncode == 0
    assert other in listed.stdout
    assert run not in listed.stdout
    assert f'{run} is not listed' in listed.stderr


def test_records_that_are_not_those_of_an_agent_are_shown_all_the_same(place: Place) -> None:
    """Another program, or another version, may have written what this one does not know."""
    import asyncio

    from habilis.journal import Journal, RunInfo
    from habilis.journal.stores.sqlite import SqliteStore

    async def write() -> None:
        store = SqliteStore(journal(place))
        made = await Journal.create(store, RunInfo(run='run-odd', name='agent', title='odd'))
        await made.write('opened', 'agent#1', value={'task': 'odd', 'limits': 'none', 'meta': 5})
        await made.write('done', 'agent#1/ask#1', value=[1, 2])
        await made.write('done', 'agent#1/cell#1', value={'code': None})
        await made.write('noted', 'agent#1', value={'resumed': 7})
        await made.write('done', 'agent#1', value='x')
        await made.close()
        await store.close()

    asyncio.run(write())
    for command in (('show',), ('show', '--json'), ('events',), ('calls',), ('export', '--format', 'jsonl')):
        done = runs(command[0], 'run-odd', *command[1:])
        assert done.returncode == 0, done.stderr
        assert 'unexpected' not in done.stderr


def test_a_huge_output_is_cut_in_show_and_kept_in_the_record(place: Place) -> None:
    run = make(place, code("print('line\\n' * 40_000)"), code('final_answer(1)'))
    assert len(runs('show', run).stdout) < 20_000
    assert len(runs('events', run).stdout) < 5_000
    assert runs('show', run, '--step', '1').stdout.count('line') >= 40_000


def _like_anybody() -> None:
    """Root may write everywhere; without these capabilities it is as bound as everybody."""
    libc = ctypes.CDLL(None)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def test_a_journal_that_may_not_be_written_is_named(place: Place) -> None:
    run = make(place)
    folder = journal(place).parent
    everything = [folder, *folder.iterdir()]
    for path in everything:
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        for command in (('rm', run, '--yes'), ('fork', run, '--at', '1', '--no-resume')):
            done = _bound(*command)
            assert (done.returncode, done.stdout, 'Traceback' in done.stderr) == (1, '', False)
            assert 'is unavailable' in done.stderr
        for command in (('list',), ('show', run), ('events', run), ('export', run)):
            done = _bound(*command)
            assert (done.returncode, done.stderr) == (0, '')
            assert run in done.stdout
    finally:
        for path in everything:
            path.chmod(0o700)
    assert len(listed()) == 1


def _bound(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, 'runs', *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment(), check=False, preexec_fn=_like_anybody
    )


def test_a_journal_that_cannot_be_made_does_not_let_a_task_begin(place: Place) -> None:
    Path('file').write_text('x')
    where = os.path.join('file', 'runs.db')
    done = habilis('run', 'Do it', '-q', '-m', script(place.folder, code('final_answer(1)')), '--journal', where)
    assert (done.returncode, done.stdout) == (1, '')
    assert 'is unavailable' in done.stderr
