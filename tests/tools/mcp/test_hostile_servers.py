"""Servers that die, hang, flood or lie: one clear error each, and the next call works or says why not."""

import asyncio
import json
from pathlib import Path

import pytest

from habilis.core.errors import ToolCallError, ToolServerError, ToolTimeout
from habilis.tools import McpServer
from habilis.tools.mcp import transports
from tests.tools.mcp.conftest import Serve
from tests.tools.mcp.raw import lines, raw_server, tool, write_tools


@pytest.mark.parametrize(
    ('does', 'problem'),
    [
        ('die', 'failed during the call: it ended with exit code 3: out of coffee'),
        ('huge', 'it sent a message of more than 20 MB'),
        ('flood', 'it sent more than 500 messages that answer nothing'),
        ('garbage', 'it sent something that is no message'),
    ],
)
async def test_a_call_that_ends_the_connection_is_one_error(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, problem: str
) -> None:
    monkeypatch.setattr(transports, 'MAX_NOTIFICATIONS', 500)
    box = await serve(tool('bad', does), tool('echo'))
    with pytest.raises(ToolServerError, match=problem):
        await box.call('bad')
    assert await box.call('echo') == '{}'
    assert len(lines(tmp_path, 'starts')) == 2
    assert len(lines(tmp_path, 'calls')) == 2, 'the failed call is not made again'


async def test_a_server_that_hangs_is_given_up_after_its_timeout(serve: Serve) -> None:
    box = await serve(tool('bad', 'hang'), timeout=0.3)
    with pytest.raises(ToolTimeout, match=r'did not answer within 0\.3 s'):
        await box.call('bad')


async def test_a_server_that_always_dies_is_not_started_for_ever(serve: Serve, tmp_path: Path) -> None:
    box = await serve(tool('bad', 'die'))
    for _ in range(3):
        with pytest.raises(ToolServerError, match='exit code 3'):
            await box.call('bad')
    with pytest.raises(ToolServerError, match='failed 3 times and is left alone: it ended with exit code 3'):
        await box.call('bad')
    assert len(lines(tmp_path, 'starts')) == 3


@pytest.mark.parametrize(
    ('server', 'problem'),
    [
        (McpServer('no-such-program-here'), 'no-such-program-here cannot be started: No such file'),
        (McpServer('true'), 'it ended with exit code 0'),
        (McpServer('sleep 100', start_timeout=0.3), 'it did not answer within 0.3 s'),
        (McpServer(url='http://127.0.0.1:9/mcp', name='there'), 'the MCP server there cannot be used'),
    ],
)
async def test_a_server_that_does_not_start_is_one_error(server: McpServer, problem: str) -> None:
    with pytest.raises(ToolServerError) as error:
        await server.opened()
    assert problem in str(error.value)
    await server.close()


async def test_the_last_words_of_a_server_are_in_the_error(tmp_path: Path) -> None:
    server = raw_server(tmp_path, tool('echo'), env={'RAW_SERVER': 'refuse'})
    with pytest.raises(ToolServerError, match='it ended with exit code 1: I do not start today'):
        await server.opened()


async def test_calls_at_the_same_time_share_one_connection(serve: Serve, tmp_path: Path) -> None:
    box = await serve(tool('echo', schema={'type': 'object', 'properties': {'n': {'type': 'integer'}}}))
    found = await asyncio.gather(*[box.call('echo', number) for number in range(50)])
    assert [json.loads(str(one))['n'] for one in found] == list(range(50))
    assert lines(tmp_path, 'starts') == ['started']


async def test_a_server_that_ignores_its_end_is_killed(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transports, 'GRACE_SECONDS', 0.1)
    script = tmp_path / 'stubborn.py'
    pid = tmp_path / 'pid'
    body = (Path(__file__).with_name('raw_server.py')).read_text()
    start = f"""
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open({str(pid)!r}, "w").write(str(os.getpid()))
"""
    script.write_text(start + body + '\ntime.sleep(1000)\n')
    write_tools(tmp_path, tool('echo'))
    stubborn = McpServer(['python3', str(script), str(tmp_path / 'raw.json')])
    box = await serve(server=stubborn)
    assert await box.call('echo') == '{}'
    await stubborn.close()
    assert not Path(f'/proc/{pid.read_text()}').exists()


async def test_an_unknown_error_of_the_protocol_is_an_error_of_the_call(serve: Serve) -> None:
    box = await serve(tool('odd', 'return [1, 2]'))
    with pytest.raises(ToolCallError, match='the MCP server raw gave an invalid answer'):
        await box.call('odd')
