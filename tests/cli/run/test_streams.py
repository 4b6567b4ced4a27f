"""The command with a stdin, stdout or stderr that is closed, full, left by its reader, or in an old encoding."""

import json
import subprocess

import pytest

from tests.cli.chat import code, script
from tests.cli.process import COMMAND, PATIENCE, environment
from tests.place import Place

LINES = 'for number in range(3000): print(number, "of what nobody reads")'


def in_a_shell(
    redirection: str, *arguments: str, env: dict[str, str] | None = None
) -> 'subprocess.CompletedProcess[str]':
    """Run it from bash. The redirection comes after it, or says itself where the command goes: `"$@"`."""
    whole = redirection if '"$@"' in redirection else f'"$@" {redirection}'
    return subprocess.run(
        ['bash', '-o', 'pipefail', '-c', whole, 'bash', *COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(env),
        timeout=PATIENCE,
        check=False,
        text=True,
        errors='replace',
    )


# stderr ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'redirection',
    ['"$@" 2>&1 >answer.txt | head -3', '>answer.txt 2> >(true)', '>answer.txt 2>/dev/full', '>answer.txt 2>&-'],
    ids=['head', 'nobody', 'full', 'closed'],
)
def test_the_answer_does_not_depend_on_the_redirection_of_output(place: Place, redirection: str) -> None:
    model = script(place.folder, code(LINES), code(LINES.replace('3000', '3001')), code('final_answer(42)'))
    done = in_a_shell(redirection, 'run', 'Print much', '-m', model)
    assert done.returncode == 0, done.stderr
    assert (place.folder / 'answer.txt').read_text() == '42\n'


def test_with_stderr_closed_stdout_has_the_result_alone(place: Place) -> None:
    model = script(place.folder, code('print(1)\nfinal_answer(2)'))
    done = in_a_shell('2>&-', 'run', 'Count', '--json', '-m', model)
    assert json.loads(done.stdout)['output'] == 2
    failed = in_a_shell('2>&-', 'runs', 'resume', 'no-such-run')
    assert (failed.returncode, failed.stdout, failed.stderr) == (1, '', '')


# stdin ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('arguments', 'returned'),
    [
        (('demo', '1', '--scripted'), 0),
        (('run',), 2),
        (('runs', 'resume', 'no-such-run'), 1),
        (('runs', 'rm', 'no-such-run'), 1),
        (('sandbox', 'repl'), 0),
        (('sandbox', 'run', '-'), 0),
    ],
)
def test_a_closed_stdin_is_one_without_a_terminal_and_without_data(arguments: tuple[str, ...], returned: int) -> None:
    done = in_a_shell('<&-', *arguments)
    assert done.returncode == returned, done.stderr
    assert 'unexpected' not in done.stderr


def test_with_stdin_closed_a_question_waits_and_a_run_is_not_deleted(place: Place) -> None:
    model = script(place.folder, code("final_answer(ask_user('Which colour?'))"))
    asked = in_a_shell('<&-', 'run', 'Paint it', '-m', model, '--run-id', 'run-1')
    assert (asked.returncode, asked.stdout) == (4, '')
    assert in_a_shell('<&-', 'runs', 'resume', 'run-1').returncode == 4
    kept = in_a_shell('<&-', 'runs', 'rm', 'run-1')
    assert kept.returncode == 2
    assert 'there is no terminal to confirm' in kept.stderr


# stdout ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('redirection', 'said'),
    [('>&-', 'habilis: stdout is closed'), ('>/dev/full', 'habilis: cannot write to stdout: No space left on device')],
    ids=['closed', 'full'],
)
def test_a_stdout_that_takes_nothing_is_one_line(place: Place, redirection: str, said: str) -> None:
    model = script(place.folder, code('final_answer(2)'))
    for arguments in (('--help',), ('models', 'list'), ('run', 'Count', '-q', '-m', model)):
        done = in_a_shell(redirection, *arguments)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith(said)
        assert 'bug' not in done.stderr
        assert 'Traceback' not in done.stderr


def test_a_pipe_with_both_in_it_and_no_reader_is_a_failure(place: Place) -> None:
    model = script(place.folder, code(LINES), code('final_answer(42)'))
    assert in_a_shell('2>&1 | true', 'run', 'Print much', '-m', model).returncode == 1


@pytest.mark.parametrize('encoding', ['cp1252', 'latin-1'])
def test_what_an_encoding_lacks_is_escaped(encoding: str) -> None:
    done = in_a_shell('', 'doctor', '--help', env={'PYTHONIOENCODING': encoding})
    assert (done.returncode, done.stderr) == (0, '')
    assert '\\u2713 found' in done.stdout
