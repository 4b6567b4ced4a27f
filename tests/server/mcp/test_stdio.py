"""`habilis mcp serve`, the real command, over stdin and stdout."""

import json
import os
import signal
import subprocess
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.cli.process import COMMAND, environment, habilis
from tests.requirements import require_namespaces
from tests.server.mcp.clients import names, run
from tests.server.mcp.test_http import HELLO

NOISY = """
import os, subprocess
print('printed by Python')
os.write(1, b'written to the descriptor')
subprocess.run(['echo', 'written by a child'])
from habilis import Agent, ScriptedModel
agent = Agent(ScriptedModel(lambda _: print('printed by a model') or '```python\\nfinal_answer(1)\\n```'), name='noisy')
"""


class Process:
    """The server, spoken to in lines."""

    def __init__(self, *arguments: str, folder: Path) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, 'mcp', 'serve', '--journal', 'off', *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment(),
        )
        assert self.ask(HELLO)['result']['serverInfo']['name'] == 'habilis'
        self.send({'jsonrpc': '2.0', 'method': 'notifications/initialized'})

    def send(self, message: Mapping[str, object]) -> None:
        """Write a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b'\n')
        self.process.stdin.flush()

    def ask(self, message: Mapping[str, object]) -> Any:
        """The next line, which must be one of the protocol."""
        self.send(message)
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def call(self, name: str, **arguments: object) -> Any:
        """The text that a tool answers."""
        params = {'name': name, 'arguments': arguments}
        answer = self.ask({'jsonrpc': '2.0', 'id': 2, 'method': 'tools/call', 'params': params})
        return answer['result']['content'][0]['text']


@pytest.fixture
def processes() -> Generator[list[Process]]:
    """Those that a test has started."""
    started: list[Process] = []
    yield started
    for one in started:
        one.process.kill()
        one.process.communicate()


@pytest.mark.parametrize('mode', ['legacy', 'auto'])
async def test_a_client_runs_python_in_a_workspace_that_it_can_only_read(tmp_path: Path, mode: str) -> None:
    (tmp_path / 'data.txt').write_text('42')
    arguments = [
        *COMMAND[1:],
        'mcp',
        'serve',
        '-w',
        str(tmp_path),
        '--journal',
        'off',
        '--library',
        str(tmp_path / 'no'),
    ]
    server = StdioServerParameters(command=COMMAND[0], args=arguments, env=environment())
    async with Client(stdio_client(server), mode=mode) as client:
        assert names((await client.list_tools()).tools) == ['python']
        assert await run(client, "n = int(open('data.txt').read())\nn") == 'Value:\n42'
        assert await run(client, 'n + 1') == 'Value:\n43'
        assert 'PermissionError' in await run(client, "open('data.txt', 'w')")


def test_stdout_has_the_protocol_alone_and_all_else_goes_to_stderr(tmp_path: Path, processes: list[Process]) -> None:
    (tmp_path / 'noisy_program.py').write_text(NOISY)
    server = Process('noisy_program:agent', folder=tmp_path)
    processes.append(server)
    assert server.call('noisy', task='Be loud.') == '1'
    assert server.call('python', code='print("inside"); input()').startswith('Output:\ninside\nError:')
    out, errors = server.process.communicate()
    assert (out, server.process.returncode) == (b'', 0)
    for text in (b'printed by Python', b'written to the descriptor', b'written by a child', b'printed by a model'):
        assert text in errors


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, None])
def test_the_end_of_the_client_leaves_no_process(
    tmp_path: Path, processes: list[Process], number: signal.Signals | None
) -> None:
    require_namespaces()
    server = Process('--sandbox', 'process', folder=tmp_path)
    processes.append(server)
    mark = f'98765{os.getpid()}'
    server.call('python', code=f'import subprocess\nchild = subprocess.Popen(["sleep", "{mark}"])')
    assert is_running(mark)
    if number is None:
        server.process.communicate()
    else:
        server.process.send_signal(number)
    assert server.process.wait() == (0 if number is None else 130)
    assert not is_running(mark)


def is_running(mark: str) -> bool:
    """Whether a process has this argument."""
    return mark in subprocess.run(['ps', '-eo', 'args'], capture_output=True, text=True, check=True).stdout


def test_another_address_than_this_machine_needs_a_key() -> None:
    done = habilis('mcp', 'serve', '--http', '--host', '0.0.0.0')
    assert done.returncode == 2
    assert 'a key is needed to serve on 0.0.0.0' in done.stderr


def test_what_cannot_be_served_is_a_usage_error(tmp_path: Path) -> None:
    done = habilis('mcp', 'serve', 'nothing')
    assert (done.returncode, done.stdout) == (2, '')
    assert "'nothing' is not MODULE:NAME" in done.stderr
    done = habilis('mcp', 'serve', 'json:dumps')
    assert (done.returncode, done.stdout) == (2, '')
    assert 'neither an Agent nor a Flow' in done.stderr
