# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
"""What callers and code do that they should not, through E2B's protocol."""

import asyncio
import contextlib
import os
import socket
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
from e2b import InvalidArgumentException, NotFoundException, SandboxException, SandboxNotRunningException
from e2b.exceptions import TimeoutException
from e2b_code_interpreter import AsyncSandbox, Sandbox

from habilis.sandbox.backends import backend
from habilis.server.e2b.machine import HostedMachine
from habilis.server.settings import ServiceSettings
from tests.requirements import require_namespaces
from tests.server.e2b.serving import KEYS, Server
from tests.server.running import running


@pytest.mark.parametrize('path', ['../../../../etc/passwd', '/etc/shadow', '/root/.ssh', '{outside}'])
def test_no_path_leads_to_the_host(sandbox: Sandbox, tmp_path: Path, path: str) -> None:
    outside = tmp_path / 'outside'
    outside.write_text('of the host')
    path = path.replace('{outside}', str(outside))
    sandbox.commands.run(f'ln -sfn {path} link')
    for name in (path, 'link'):
        with pytest.raises((NotFoundException, SandboxException)):
            sandbox.files.read(name)
    with contextlib.suppress(SandboxException):
        sandbox.files.write(path, 'changed')  # in its own /tmp, for one
    assert outside.read_text() == 'of the host'


@pytest.mark.parametrize('path', ['/run/machine/requests', '/usr/bin/evil', '/guest/habilis/x.py', '/dev/null', ''])
def test_what_is_not_a_file_of_the_sandbox_cannot_be_written(sandbox: Sandbox, path: str) -> None:
    with pytest.raises((InvalidArgumentException, SandboxException)):
        sandbox.files.write(path, 'x')
    assert sandbox.commands.run('echo fine').stdout == 'fine\n'


async def test_a_machine_leaves_no_pipe_open_if_its_end_is_cancelled() -> None:
    """As that of a machine that expires in the moment in which the server stops."""
    require_namespaces()
    before = _open_pipes()
    machine = HostedMachine(backend('process'), ServiceSettings(), 'me')
    await machine.start(seconds=60, env={})
    assert len(_open_pipes() - before) == 2
    closing = asyncio.create_task(machine.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    assert _open_pipes() == before
    await machine.close()


def _open_pipes() -> set[str]:
    """The descriptors of this process through which machines get their requests."""
    found: set[str] = set()
    for descriptor in Path('/proc/self/fd').iterdir():
        with contextlib.suppress(OSError):
            if descriptor.readlink().name == 'requests':
                found.add(descriptor.name)
    return found


def test_a_fifo_of_the_code_does_not_block(sandbox: Sandbox) -> None:
    sandbox.commands.run('mkfifo fifo; mkfifo requests')
    with pytest.raises(SandboxException):
        sandbox.files.read('fifo')
    with pytest.raises(SandboxException):
        sandbox.files.write('fifo', 'x')
    assert sandbox.files.exists('fifo')


def test_a_body_that_is_too_large_is_refused(sandbox: Sandbox) -> None:
    large = b'x' * (5 << 20)
    ways: list[dict[str, Any]] = [{}, {'gzip': True}, {'use_octet_stream': True}]
    for options in ways:
        with pytest.raises(SandboxException, match='413'):
            sandbox.files.write('large', large, **options)
    cat = sandbox.commands.run('cat > /dev/null', background=True, stdin=True)
    with pytest.raises(InvalidArgumentException, match='the body may have'):
        cat.send_stdin(large)
    cat.kill()


def test_a_context_whose_folder_is_gone_says_so(sandbox: Sandbox) -> None:
    sandbox.files.make_dir('gone')
    context = sandbox.create_code_context(cwd='gone')
    sandbox.files.remove('gone')
    error = sandbox.run_code('1', context=context).error
    assert error is not None
    assert 'No such file' in error.value


def test_a_machine_that_stops_listening_does_not_fill_the_memory_of_the_server(server: Server) -> None:
    sandbox = Sandbox.create(**server.options())
    deaf = 'for p in /proc/[0-9]*; do [ ${p#/proc/} != $$ ] && kill -STOP ${p#/proc/} 2>/dev/null; done; true'
    with contextlib.suppress(SandboxException):
        sandbox.commands.run(deaf, timeout=1)
    errors: list[str] = []
    for _ in range(12):
        try:
            sandbox.files.write('x', b'x' * (1 << 20), request_timeout=0.2)
        except Exception as error:
            errors.append(type(error).__name__)
    assert (len(errors), errors[-1]) == (12, 'NotEnoughSpaceException')
    assert sandbox.kill()


def test_a_flood_of_output_waits_for_its_reader(sandbox: Sandbox) -> None:
    flood = sandbox.commands.run('yes > >(tee count); wait', background=True, retain_output=False)
    while not sandbox.files.exists('count') or sandbox.files.get_info('count').size < 1 << 20:
        time.sleep(0.05)
    sizes = [-1, 0]
    while sizes[-1] != sizes[-2]:  # nobody reads, so it stops
        time.sleep(0.5)
        sizes.append(sandbox.files.get_info('count').size)
    assert sizes[-1] < 64 << 20
    assert sandbox.commands.run('echo the others go on').exit_code == 0
    assert flood.kill()


def test_all_of_a_long_output_arrives(sandbox: Sandbox) -> None:
    done = sandbox.commands.run('head -c 8000000 /dev/zero | tr "\\0" x; echo end')
    assert (len(done.stdout), done.stdout[-5:]) == (8_000_004, 'xend\n')


async def test_a_command_outlives_its_connection_and_can_be_found_again(server: Server) -> None:
    sandbox = await AsyncSandbox.create(**server.options())
    first = await sandbox.commands.run('while [ ! -e go ]; do sleep 0.05; done; echo done', background=True)
    await first.disconnect()
    again = await sandbox.commands.connect(first.pid)
    await sandbox.files.write('go', '')
    assert (await again.wait()).stdout == 'done\n'
    with pytest.raises(NotFoundException):
        await sandbox.commands.connect(first.pid)
    await sandbox.kill()


def test_a_connection_that_breaks_in_the_middle_of_a_command_leaves_it_running(server: Server) -> None:
    sandbox = Sandbox.create(**server.options())
    body = b'{"process":{"cmd":"/bin/sleep","args":["1000"]}}'
    head = (
        f'POST /process.Process/Start HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/connect+json\r\n'
        f'E2b-Sandbox-Id: {sandbox.sandbox_id}\r\nX-Access-Token: {sandbox.traffic_access_token}\r\n'
        f'Connect-Protocol-Version: 1\r\nContent-Length: {len(body) + 5}\r\n\r\n'
    )
    address = httpx2.URL(server.url)
    with socket.create_connection((address.host, address.port)) as connection:
        connection.sendall(head.encode() + b'\0' + len(body).to_bytes(4, 'big') + body)
        assert b'200' in connection.recv(1000)
    [left] = sandbox.commands.list()
    assert left.cmd == '/bin/sleep'
    assert sandbox.commands.kill(left.pid)
    sandbox.kill()


def test_a_command_ends_at_its_timeout(sandbox: Sandbox) -> None:
    with pytest.raises(TimeoutException):
        sandbox.commands.run('sleep 1000', timeout=0.5)
    while sandbox.commands.list():
        time.sleep(0.05)


def test_code_that_takes_too_long_is_stopped_and_the_variables_stay(server: Server) -> None:
    sandbox = Sandbox.create(**server.options())
    sandbox.run_code('x = 1')
    with pytest.raises(TimeoutException):
        sandbox.run_code('while True: pass', timeout=1)
    assert sandbox.run_code('x').text == '1'
    exited = sandbox.run_code('import os; os._exit(3)')
    assert exited.error is not None
    assert sandbox.run_code('x').text == '1'
    sandbox.kill()


def test_code_that_kills_everything_loses_its_sandbox_and_no_other(server: Server, sandbox: Sandbox) -> None:
    victim = Sandbox.create(**server.options())
    with pytest.raises(SandboxException):
        victim.commands.run('kill -9 -1; sleep 10')
    assert not victim.is_running()
    assert sandbox.is_running()
    assert not victim.kill()


def test_an_expired_sandbox_is_gone() -> None:
    require_namespaces()
    with running(ServiceSettings(port=0, keys=KEYS, e2b=True, idle_seconds=0.2)) as url:
        server = Server(url)
        short = Sandbox.create(timeout=1, **server.options())
        busy = short.commands.run('sleep 1000', background=True)  # so it is not idle, and ends at its time
        idle = Sandbox.create(timeout=1000, **server.options())
        assert idle.run_code('1').text == '1'  # its kernel waits for the next cell, and is idle
        while short.is_running() or idle.is_running():
            time.sleep(0.3)
        with pytest.raises(SandboxNotRunningException):
            idle.commands.run('echo')
        with pytest.raises(SandboxException):
            busy.wait()
        with pytest.raises(NotFoundException):
            idle.set_timeout(100)


def test_without_its_option_the_protocol_is_not_there() -> None:
    with running(ServiceSettings(port=0)) as url, pytest.raises(SandboxException, match='start the server with --e2b'):
        Sandbox.create(**Server(url).options())


async def test_malformed_requests_are_refused(server: Server, sandbox: Sandbox) -> None:
    key, token = {'X-API-Key': KEYS[0]}, sandbox.traffic_access_token or ''
    inside = {'E2b-Sandbox-Id': sandbox.sandbox_id, 'X-Access-Token': token}
    plain = {'Content-Type': 'application/json'}
    async with httpx2.AsyncClient(base_url=server.url) as http:
        for body in (b'{', b'[]', b'{"timeout": -1}', b'{"metadata": {"a": 1}}', b'\xff'):
            assert (await http.post('/v2/sandboxes', headers=key, content=body)).status_code == 400
        assert (await http.post('/execute', headers=inside, content=b'{}')).status_code == 400
        assert (
            await http.post('/files?path=x', headers={**inside, 'Content-Encoding': 'gzip'}, content=b'no')
        ).status_code == 400
        for path in ('/process.Process/Start', '/filesystem.Filesystem/Stat', '/process.Process/Nothing'):
            assert (await http.post(path, headers={**inside, **plain}, content=b'{')).status_code in (400, 404, 415)
        selected = {'process': {'pid': 1}}
        for call in ('SendInput', 'SendSignal', 'CloseStdin'):
            answer = await http.post(f'/process.Process/{call}', headers=inside, json={**selected, 'signal': 9})
            assert answer.status_code in (404, 501)
        page = await http.get('/health', headers={**inside, 'Origin': 'http://evil.example'})
        assert page.status_code == 403
    assert sandbox.commands.run('echo fine').stdout == 'fine\n'


async def test_many_requests_at_once_are_answered(server: Server, sandbox: Sandbox) -> None:
    connected = await AsyncSandbox.connect(sandbox.sandbox_id, **server.options())
    written = await asyncio.gather(*(connected.files.write(f'many/{number}', str(number)) for number in range(40)))
    assert len(written) == 40
    assert sandbox.commands.run('cat many/* | wc -c').stdout == '70\n'


def test_nothing_is_left_of_a_killed_sandbox(server: Server) -> None:
    def machines() -> int:
        found = 0
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                found += Path(f'/proc/{pid}/cmdline').read_bytes().startswith(b'left-of-a-sandbox')
            except OSError:
                continue
        return found

    sandbox = Sandbox.create(**server.options())
    sandbox.commands.run('setsid bash -c "exec -a left-of-a-sandbox sleep 1000" &', background=True)
    while not machines():
        time.sleep(0.05)
    sandbox.kill()
    while machines():
        time.sleep(0.05)
