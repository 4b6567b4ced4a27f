"""The command as a whole: help, version, and errors that are sentences."""

import importlib.metadata
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import COMMAND, environment, habilis, on_terminal

HEAVY = ('rich', 'asyncio', 'wasmtime', 'pydantic', 'json', 'habilis.sandbox', 'habilis.core')
HELP_SECONDS = 0.25

WITH_A_BUG = """
import sys
from habilis.cli import commands, main
commands.COMMANDS['doctor'] = ('habilis.cli.no_such_module', '')
sys.argv = ['habilis', 'doctor']
main.main()
"""


def imported_by(*arguments: str) -> set[str]:
    """The modules a call of the command loads."""
    command = [sys.executable, '-X', 'importtime', '-m', 'habilis', *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(), timeout=600)
    return {line.rpartition('|')[2].strip() for line in done.stderr.splitlines() if line.startswith('import time:')}


def test_help_names_the_subcommands_and_gives_examples() -> None:
    done = habilis('--help')
    assert done.returncode == 0
    assert done.stderr == ''
    for word in (
        'run',
        'demo',
        'doctor',
        'sandbox',
        'Examples:',
        'habilis sandbox run script.py',
        '--version',
    ):
        assert word in done.stdout


def test_help_loads_nothing_heavy() -> None:
    loaded = imported_by('--help')
    assert 'typer' in loaded
    assert not {name for name in loaded if name.startswith(tuple(f'{heavy}.' for heavy in HEAVY)) or name in HEAVY}


FIRST_SIGN = """
import os, sys
write = os.write
def show_modules(terminal, data):
    write(terminal, data + b' ' + ' '.join(sys.modules).encode() + b' .\\n')
    os._exit(0)
os.write = show_modules
from habilis.cli.main import main
main()
"""


@pytest.mark.parametrize('arguments', [['run', 'a task'], ['chat', '--mode', 'plan'], []], ids=' '.join)
def test_a_run_and_a_chat_show_a_sign_of_life_before_they_import_anything_heavy(arguments: list[str]) -> None:
    with on_terminal(command=[sys.executable, '-c', FIRST_SIGN, *arguments]) as terminal:
        shown = terminal.wait_for(' .\n')
    assert 'starting' in shown
    assert not ({'typer', 'subprocess', *HEAVY} - {'habilis.core'}) & set(shown.split())


def test_the_version_loads_nothing_heavy() -> None:
    assert not imported_by('--version') & set(HEAVY)


@pytest.mark.bench
def test_help_is_there_in_a_quarter_of_a_second() -> None:
    assert min(cpu_seconds('--help') for _ in range(7)) < HELP_SECONDS


def cpu_seconds(*arguments: str) -> float:
    """What a call of the command computes; on a quiet machine it takes no longer than that."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    habilis(*arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_the_version_is_that_of_the_package() -> None:
    done = habilis('--version')
    assert (done.returncode, done.stdout) == (0, f'habilis {importlib.metadata.version("habilis")}\n')


def test_the_installed_command_is_the_same_as_the_module() -> None:
    [entry] = importlib.metadata.entry_points(group='console_scripts', name='habilis')
    assert entry.value == 'habilis.cli.main:main'


def test_without_a_subcommand_there_is_help() -> None:
    done = subprocess.run(
        COMMAND, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment(), check=False
    )
    assert done.returncode == 2
    assert 'Usage: habilis' in done.stdout + done.stderr


@pytest.mark.parametrize(
    'arguments',
    [
        ('run',),
        ('demo',),
        ('sandbox',),
        ('sandbox', 'run'),
        ('sandbox', 'repl'),
        ('doctor',),
    ],
    ids=' '.join,
)
def test_every_subcommand_explains_itself(arguments: tuple[str, ...]) -> None:
    done = habilis(*arguments, '--help')
    assert done.returncode == 0
    assert f'Usage: habilis {" ".join(arguments)}' in done.stdout


def test_a_misspelt_subcommand_brings_a_suggestion() -> None:
    done = habilis('sandbax')
    assert done.returncode == 2
    assert "Did you mean 'sandbox'?" in done.stderr


@pytest.mark.parametrize('arguments', [('--no-such-option',), ('sandbox', 'run', 'x.py', '--no-such-option')])
def test_an_unknown_option_is_wrong_usage(arguments: tuple[str, ...]) -> None:
    done = habilis(*arguments)
    assert done.returncode == 2
    assert 'No such option: --no-such-option' in done.stderr


def test_an_error_of_habilis_is_one_line(tmp_path: Path) -> None:
    in_the_way = tmp_path / 'file'
    in_the_way.touch()
    done = habilis('sandbox', 'run', '-', stdin='1', env={'HABILIS_CACHE': str(in_the_way)})
    assert done.returncode == 1
    assert re.fullmatch(r'habilis: cannot create the cache folder .+\n', done.stderr)
    assert done.stdout == ''


def test_a_bug_is_a_sentence_too() -> None:
    done = subprocess.run(
        [sys.executable, '-c', WITH_A_BUG], capture_output=True, text=True, check=False, env=environment()
    )
    assert done.returncode == 1
    assert re.fullmatch(r'habilis: unexpected ModuleNotFoundError: .+HABILIS_TRACEBACK=1.+\n', done.stderr)


def test_a_developer_can_have_the_traceback() -> None:
    env = environment({'HABILIS_TRACEBACK': '1'})
    done = subprocess.run([sys.executable, '-c', WITH_A_BUG], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 1
    assert done.stderr.startswith('Traceback (most recent call last):')


@pytest.mark.parametrize('arguments', [('--help',), ('sandbox', 'run', '-')], ids=' '.join)
def test_a_reader_who_goes_away_is_no_error(arguments: tuple[str, ...]) -> None:
    with subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        process.stdin.write(b'import time\nfor i in range(100): print(i); time.sleep(0.05)\n')
        process.stdin.close()
        complaints = process.stderr.read()
    assert complaints == b''
    assert process.returncode == 1


@pytest.mark.parametrize(
    ('arguments', 'stdin'),
    [
        (('--version',), ''),
        (('sandbox', 'run'), ''),
        (
            ('sandbox', 'run', '-'),
            'import sys\nprint("out", 42)\nprint("err", file=sys.stderr)\nraise SystemExit(3)',
        ),
        (('sandbox', 'run', '-'), 'print("x" * 300_000)'),
    ],
)
def test_forked_for_the_tests_it_is_as_started_by_its_users(arguments: tuple[str, ...], stdin: str) -> None:
    forked, fresh = habilis(*arguments, stdin=stdin), habilis(*arguments, stdin=stdin, fresh=True)
    assert (forked.returncode, forked.stdout, forked.stderr) == (fresh.returncode, fresh.stdout, fresh.stderr)
