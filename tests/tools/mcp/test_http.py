"""A server of the official SDK over HTTP, in both of its forms."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Generator

import pytest

from habilis.core.errors import ToolServerError
from habilis.tools import McpServer
from tests.tools.mcp.conftest import Serve
from tests.waiting import until

PROGRAM = """
import sys
from mcp.server.mcpserver import MCPServer

server = MCPServer('adder')

@server.tool()
def add(a: int, b: int = 1) -> int:
    return a + b

@server.resource('notes://today')
def today() -> str:
    return 'buy milk'

@server.prompt()
def greet(name: str) -> str:
    return f'Greet {name}.'

server.run(transport=sys.argv[1], port=int(sys.argv[2]))
"""


FLOOD = """
import http.server, sys

class Flood(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.send_response(200)
        self.send_header('content-type', 'application/json')
        self.end_headers()
        while True:
            self.wfile.write(b'[' * 1_000_000)

http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[2])), Flood).serve_forever()
"""


def _is_open(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(('127.0.0.1', port)) == 0


@contextlib.contextmanager
def running(program: str, argument: str = '') -> Generator[int]:
    """The port of a program that runs."""
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, '-c', program, argument, str(port)], stderr=subprocess.DEVNULL)
    yield port
    process.kill()
    process.wait()


@pytest.fixture(params=['streamable-http', 'sse'])
def address(request: pytest.FixtureRequest) -> Generator[tuple[str, int]]:
    with running(PROGRAM, request.param) as port:
        yield request.param, port


async def test_an_answer_without_end_is_one_error() -> None:
    with running(FLOOD) as port:
        await until(lambda: _is_open(port))
        server = McpServer(url=f'http://127.0.0.1:{port}/mcp', name='flood')
        with pytest.raises(ToolServerError, match='it sent a message of more than 20 MB'):
            await server.opened()
        await server.close()


async def test_tools_resources_and_prompts_over_http(serve: Serve, address: tuple[str, int]) -> None:
    transport, port = address
    await until(lambda: _is_open(port))
    path = 'sse' if transport == 'sse' else 'mcp'
    server = McpServer(
        url=f'http://127.0.0.1:{port}/{path}', name='adder', transport='sse' if transport == 'sse' else 'http'
    )
    box = await serve(server=server)
    assert await box.call('add', 2) == 3, 'what the SDK wraps in an object is unwrapped'
    assert 'def add(a: int, b: int = 1) -> int' in box.stubs()
    assert [one['uri'] for one in await box.call('adder_resources')] == ['notes://today']
    assert await box.call('adder_read_resource', 'notes://today') == 'buy milk'
    assert await box.call('adder_prompts') == [{'name': 'greet', 'description': '', 'arguments': ['name']}]
    assert await box.call('adder_prompt', 'greet', {'name': 'Ann'}) == 'user: Greet Ann.'
