"""`habilis mcp`, and `habilis run --mcp`."""

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.chat import code, script
from tests.cli.process import habilis, on_terminal
from tests.place import Place
from tests.tools.mcp.raw import command, lines, tool, write_tools

CITY = {'type': 'object', 'properties': {'city': {'type': 'string'}}, 'required': ['city']}
LOOP = {'type': 'object', 'properties': {'self': {'$ref': '#'}}}
ECHO = tool('echo', schema=CITY, description='Says the city.')


@pytest.fixture
def server(place: Place) -> str:
    """A command line."""
    return shlex.join(command(write_tools(place.folder, ECHO, tool('odd', schema=LOOP))))


def project(folder: Path, server: str) -> Path:
    """A folder with a file of servers."""
    program, *arguments = shlex.split(server)
    path = folder / '.mcp.json'
    path.write_text(json.dumps({'mcpServers': {'notes': {'command': program, 'args': arguments}}}))
    return path


def test_tools_are_shown_as_code_sees_them(server: str) -> None:
    shown = habilis('mcp', 'tools', server)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == 'def echo(city: str) -> str:\n    """Says the city."""\n'
    assert 'odd cannot be used: # refers to itself' in shown.stderr
    found = json.loads(habilis('mcp', 'tools', server, '--json').stdout)
    assert [one['name'] for one in found['tools']] == ['echo']
    assert found['refused'] == {'odd': '# refers to itself'}


def test_a_tool_is_called_with_arguments_as_text(server: str) -> None:
    assert habilis('mcp', 'call', server, 'echo', 'Rome').stdout == '{"city": "Rome"}\n'
    assert json.loads(habilis('mcp', 'call', server, 'echo', 'city=Rome', '--json').stdout) == '{"city": "Rome"}'
    wrong = habilis('mcp', 'call', server, 'ecco', 'Rome')
    assert wrong.returncode == 2
    assert 'did you mean echo?' in wrong.stderr
    missing = habilis('mcp', 'call', server, 'echo')
    assert missing.returncode == 2
    assert 'city: missing' in missing.stderr


def test_servers_of_the_folder_are_listed_and_checked(place: Place, server: str) -> None:
    project(place.folder, server)
    assert habilis('mcp', 'list').stdout.splitlines()[1].split()[0] == 'notes'
    assert json.loads(habilis('mcp', 'list', '--json').stdout)[0]['address'] == server
    assert not lines(place.folder, 'starts')
    assert habilis('mcp', 'call', 'notes', 'echo', 'Rome').stdout == '{"city": "Rome"}\n'
    checked = habilis('mcp', 'doctor')
    assert (checked.returncode, checked.stdout) == (1, 'notes: odd cannot be used: # refers to itself\n')
    broken = habilis('mcp', 'doctor', 'no-such-program')
    assert broken.returncode == 1
    assert 'no-such-program cannot be started' in broken.stdout


def test_a_run_uses_servers_and_its_resumption_too(place: Place, server: str) -> None:
    replies = [code("x = echo('Rome')\nprint(x)"), code("final_answer([x, echo('Oslo')])")]
    model = script(place.folder, *replies)
    done = habilis('run', 'go', '--mcp', server, '--max-steps', '1', '--run-id', 'r', '-m', model)
    assert done.returncode == 3, done.stderr
    assert 'first use of echo of the MCP server raw: Says the city.' in done.stderr
    done = habilis('runs', 'resume', 'r', '--max-steps', '5')
    assert done.stdout == '[\'{"city": "Rome"}\', \'{"city": "Oslo"}\']\n', done.stderr
    assert lines(place.folder, 'calls') == ['echo {"city": "Rome"}', 'echo {"city": "Oslo"}']


def test_a_server_that_does_not_start_is_one_line(place: Place) -> None:
    done = habilis('run', 'go', '--mcp', 'no-such-program', '-m', script(place.folder, code('1')))
    assert done.returncode == 1
    assert 'habilis: the MCP server no_such_program cannot be used: no-such-program cannot be started' in done.stderr


def test_servers_of_a_shared_folder_are_used_once_the_user_agrees(place: Place, server: str) -> None:
    path = project(place.folder, server)
    model = script(place.folder, code("final_answer(echo('Rome'))"))
    unasked = habilis('run', 'go', '-w', '.', '-m', model, '--max-steps', '1')
    assert f'{path} is not used: it starts programs. Use it with --mcp' in unasked.stderr
    assert not lines(place.folder, 'starts')
    with on_terminal('run', 'go', '-w', '.', '-m', model) as terminal:
        assert 'notes: ' in terminal.wait_for('Use them? [y/N]')
        terminal.type('y\n')
        terminal.wait_for('{"city": "Rome"}')
        terminal.read_all()
    assert habilis('run', 'go', '-w', '.', '-m', model, '-q').stdout == '{"city": "Rome"}\n'
    path.write_text(path.read_text() + '\n')
    assert 'is not used' in habilis('run', 'go', '-w', '.', '-m', model, '--max-steps', '1').stderr


def test_named_servers_are_used_without_a_question(place: Place, server: str) -> None:
    path = project(place.folder, server)
    model = script(place.folder, code("final_answer(echo('Rome'))"))
    assert habilis('run', 'go', '--mcp', path.name, '-q', '-m', model).stdout == '{"city": "Rome"}\n'
