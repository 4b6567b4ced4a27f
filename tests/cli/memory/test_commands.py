"""`habilis memory`, `habilis tasks` and `habilis sessions`, as a person uses them."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from rich.cells import cell_len

from habilis.cli.printing import console
from habilis.journal import RunInfo
from habilis.journal.stores.sqlite import SqliteStore
from habilis.memory import Memory
from tests.cli.chat import script
from tests.cli.process import habilis, on_terminal

Command = Callable[..., CompletedProcess[str]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / 'memory.db'


@pytest.fixture
def run(place: Path) -> Command:
    """Runs a command with the memory of ann."""

    def command(*arguments: str, stdin: str = '', user: str = 'ann') -> CompletedProcess[str]:
        return habilis(*arguments, '--memory', str(place), '--user', user, stdin=stdin)

    return command


async def fill(place: Path) -> None:
    async with Memory(place, user='ann') as memory:
        await memory.add_turn('monday', 'user', 'Where did we leave the canoe?', time=1e9)
        await memory.add_turn('monday', 'assistant', 'Behind the \x1b[31mshed.', time=1e9 + 1)
        await memory.add_turn('friday', 'user', 'Thanks', time=1.5e9)


async def test_on_a_narrow_terminal_the_text_of_an_entry_is_wrapped_below_the_rest(place: Path) -> None:
    texts = ['Prefers short answers in plain words, with their sources', '猫の名前はタマで' * 5, 'x' * 70]
    async with Memory(place, user='ann') as memory:
        facts = [await memory.add_fact(text) for text in texts]
        for number in range(2):
            await memory.add_task(f'Paint the boat {texts[0]}', after=[1] * number)
    with on_terminal('memory', 'list', '--memory', str(place), '--user', 'ann', columns=60) as terminal:
        shown = re.sub('\x1b\\[[0-9;]*m', '', terminal.wait_for('x' * 12 + '\n'))
    lines = shown.splitlines()
    assert all(cell_len(line) <= 60 for line in lines)
    assert [line.split()[0] for line in lines if not line.startswith(' ')] == [fact.id for fact in facts]
    assert ''.join(line.strip() for line in lines if line.startswith('  猫')).startswith(texts[1][:20])
    with on_terminal('tasks', 'list', '--memory', str(place), '--user', 'ann', columns=30) as terminal:
        assert '\n2  pending  after 1' in re.sub('\x1b\\[[0-9;]*m', '', terminal.wait_for('after 1'))


def _narrow(_: int) -> os.terminal_size:
    return os.terminal_size((47, 20))


def test_a_dumb_terminal_is_as_wide_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('COLUMNS', raising=False)
    monkeypatch.setenv('TERM', 'dumb')
    monkeypatch.setattr('rich.console.Console.is_terminal', True)
    monkeypatch.setattr('habilis.cli.printing.os.get_terminal_size', _narrow)
    monkeypatch.setattr('sys.stdout.fileno', lambda: 1)
    assert console().width == 47


def test_facts_are_added_listed_replaced_and_found(run: Command) -> None:
    old = run('memory', 'add', 'Lives in Lisbon').stdout.strip()
    assert run('memory', 'add', 'lives in lisbon.').stdout.strip() == old
    new = json.loads(run('memory', 'add', 'Lives in Porto', '--replaces', old[:6], '--json').stdout)
    assert [fact['text'] for fact in json.loads(run('memory', 'list', '--json').stdout)] == ['Lives in Porto']
    listed = run('memory', 'list', '--history').stdout
    assert listed.splitlines()[0].split() == ['ID', 'TIME', 'WHO', 'SESSION', 'TEXT']
    assert '(fact, replaced)' in listed
    found = json.loads(run('memory', 'search', 'where do I live', '--json').stdout)
    assert [(hit['id'], hit['type']) for hit in found] == [(new['id'], 'fact')]
    assert found[0]['why'].startswith('score ')
    refused = run('memory', 'add', 'x', '--replaces', 'nothing')
    assert (refused.returncode, refused.stderr.count('\n')) == (1, 1)
    assert "no fact has the id 'nothing'" in refused.stderr


async def test_turns_are_found_with_those_around_them(run: Command, place: Path) -> None:
    await fill(place)
    shown = run('memory', 'search', 'canoe', '--limit', '1').stdout
    assert 'user: Where did we leave the canoe?' in shown
    assert 'assistant: Behind the shed.' in shown
    assert '\x1b' not in shown
    assert run('memory', 'search', 'canoe', '--since', '2010-01-01').returncode == 1
    assert run('memory', 'search', 'canoe', user='bob').returncode == 1
    wrong = run('memory', 'search', 'canoe', '--since', 'yesterday')
    assert wrong.returncode == 2
    assert "'yesterday' is not a date" in wrong.stderr


async def test_why_shows_what_a_task_would_get(run: Command, place: Path) -> None:
    await fill(place)
    run('memory', 'add', 'Answer in German', '--kind', 'instruction')
    shown = run('memory', 'why', 'Get the canoe').stdout
    assert 'instruction: applies to every task' in shown
    assert 'canoe' in shown
    data = json.loads(run('memory', 'why', 'Get the canoe', '--json', '--budget', '20').stdout)
    assert data['tokens'] <= 20


async def test_forgetting_asks_first(run: Command, place: Path) -> None:
    await fill(place)
    refused = run('memory', 'forget', '--query', 'canoe')
    assert (refused.returncode, 'use --yes' in refused.stderr) == (2, True)
    assert run('memory', 'forget', '--query', 'canoe', '--before', '2030-01-01').returncode == 2
    assert run('memory', 'forget', '--query', 'canoe', '--yes').stderr == 'habilis: forgot 1 entry\n'
    assert b'canoe' not in place.read_bytes()
    assert run('memory', 'forget', '--query', 'canoe', '--yes').returncode == 1
    gone = json.loads(run('memory', 'forget', '--before', '2010-01-01', '--yes', '--json').stdout)
    assert [entry['session'] for entry in gone] == ['monday']


async def test_recorded_conversations_are_forgotten_with_the_turns(run: Command, place: Path) -> None:
    answers = script(place.parent, 'Behind the shed.')
    run('chat', '--model', answers, stdin='Where is the canoe?\n')
    assert 'canoe' in habilis('runs', 'list', '--user', 'ann').stdout
    assert 'forgot 1 entry and 1 recorded run' in run('memory', 'forget', '--query', 'canoe', '--runs', '--yes').stderr
    assert 'canoe' not in habilis('runs', 'list', '--user', 'ann').stdout


async def test_an_export_is_imported_for_another_user(run: Command, place: Path, tmp_path: Path) -> None:
    await fill(place)
    run('tasks', 'add', 'Fetch the canoe')
    file = tmp_path / 'memory.jsonl'
    assert run('memory', 'export', str(file)).returncode == 0
    assert file.stat().st_mode & 0o077 == 0
    assert json.loads(run('memory', 'import', str(file), '--json', user='bob').stdout) == {'added': 4}
    assert run('memory', 'export', user='bob').stdout == file.read_text()
    for text, why in (('{}', 'no export of a memory'), ('\x00', 'line 1')):
        refused = run('memory', 'import', '-', stdin=text)
        assert (refused.returncode, refused.stderr.count('\n')) == (1, 1)
        assert why in refused.stderr
    missing = run('memory', 'import', str(tmp_path / 'none'))
    assert 'cannot read' in missing.stderr


def test_tasks_are_added_changed_and_deleted(run: Command) -> None:
    assert run('tasks', 'add', 'Write', '--due', '2030-01-31', '--notes', 'n').stdout == '1\n'
    assert run('tasks', 'add', 'Send', '--after', '1').stdout == '2\n'
    lines = run('tasks', 'list').stdout.splitlines()
    assert [line.split() for line in lines] == [
        ['TASK', 'STATE', 'DUE', 'AFTER', 'TITLE'],
        ['1', 'pending', '2030-01-31', 'Write'],
        ['2', 'pending', '1', 'Send'],
    ]
    assert 'must wait for 1' in run('tasks', 'done', '2').stderr
    assert run('tasks', 'update', '1', '--state', 'finished').returncode == 2
    assert 'is not a date' in run('tasks', 'update', '1', '--due', 'soon').stderr
    changed = json.loads(run('tasks', 'update', '1', '--state', 'in_progress', '--due', '', '--json').stdout)
    assert [(task['state'], task['due'], task['notes']) for task in changed] == [('in_progress', None, 'n')]
    assert run('tasks', 'done', '1', '2').returncode == 0
    assert run('tasks', 'list').stderr == 'habilis: no open tasks\n'
    assert run('tasks', 'rm', '1').returncode == 2
    assert run('tasks', 'rm', '1', '2', '--yes').returncode == 0
    assert json.loads(run('tasks', 'list', '--all', '--json').stdout) == []
    assert 'there is no task 1' in run('tasks', 'rm', '1', '--yes').stderr


async def test_sessions_have_turns_and_runs(run: Command, place: Path, tmp_path: Path) -> None:
    await fill(place)
    journal = str(tmp_path / 'runs.db')
    store = SqliteStore(journal)
    for number, session in enumerate(('monday', 'sunday', '')):
        info = RunInfo(run=f'run{number}', kind='agent', name='a', title=f't{number}', user='ann', session=session)
        await store.create(info)
    await store.close()
    rows = json.loads(run('sessions', 'list', '--json', '--journal', journal).stdout)
    assert sorted((row['session'], row['turns'], row['runs']) for row in rows) == [
        ('friday', 1, 0),
        ('monday', 2, 1),
        ('sunday', 0, 1),
    ]
    assert 'monday' in run('sessions', 'list', '--journal', journal).stdout
    shown = run('sessions', 'show', 'monday', '--journal', journal).stdout
    assert 'Where did we leave the canoe?' in shown
    assert 'run run0' in shown
    assert 'no such session' in run('sessions', 'show', 'monday', '--journal', journal, user='bob').stderr
    gone = json.loads(run('sessions', 'rm', 'monday', '--yes', '--json', '--journal', journal).stdout)
    assert (len(gone['entries']), gone['runs']) == (2, ['run0'])
    assert 'no such session' in run('sessions', 'rm', 'monday', '--yes', '--journal', journal).stderr


def test_an_empty_memory_says_what_to_do(run: Command) -> None:
    assert 'habilis memory add' in run('memory', 'list').stderr
    assert run('sessions', 'list').stderr == 'habilis: no conversations yet\n'


def test_a_place_that_is_none_is_refused_in_one_line(tmp_path: Path) -> None:
    done = habilis('memory', 'list', '--memory', str(tmp_path))
    assert (done.returncode, done.stderr.count('\n')) == (1, 1)
    assert 'it is a folder' in done.stderr
