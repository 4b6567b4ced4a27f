"""The MCP server over HTTP, used by the official client, and by strangers."""

import asyncio
import base64
from collections.abc import Generator
from dataclasses import replace

import anyio
import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ImageContent

from habilis.core.limits import Limits
from habilis.server.mcp.http import http_app
from habilis.server.mcp.protocol import McpService
from habilis.server.mcp.settings import McpSettings
from habilis.server.serve import listen, make_server
from habilis.server.settings import ServiceSettings
from tests.server.mcp.clients import over_http, run, text_of
from tests.server.running import serving
from tests.waiting import until

SERVICE = ServiceSettings(port=0, sandboxes=4, body_bytes=1 << 20)
SETTINGS = McpSettings(service=SERVICE, sandbox={'limits': Limits(seconds=600)})
KEYS = ('one key for the first', 'one key for the second')
HELLO = {
    'jsonrpc': '2.0',
    'id': 1,
    'method': 'initialize',
    'params': {'protocolVersion': '2025-11-25', 'capabilities': {}, 'clientInfo': {'name': 'test', 'version': '1'}},
}
HEADERS = {'accept': 'application/json, text/event-stream', 'content-type': 'application/json'}
PICTURE = """
class Picture:
    def _repr_png_(self):
        return b'\\x89PNG picture'
display(Picture(), 'words')
"""


class Served:
    """A running server."""

    def __init__(self, settings: McpSettings) -> None:
        self.server = McpService(settings)
        self.running = serving(make_server(http_app(self.server, settings), settings.service), listen(settings.service))
        self.address = ''

    @property
    def sandboxes(self) -> int:
        """How many are open."""
        return self.server.registry.count


@pytest.fixture
def served(request: pytest.FixtureRequest) -> Generator[Served]:
    """A server with the settings of the test."""
    made = Served(getattr(request, 'param', SETTINGS))
    with made.running as made.address:
        yield made


def with_settings(**changes: object) -> pytest.MarkDecorator:
    """Another server."""
    settings = replace(SETTINGS, service=replace(SERVICE, **changes))  # pyright: ignore[reportArgumentType]
    return pytest.mark.parametrize('served', [settings], indirect=True, ids=['changed'])


async def test_a_server_that_ends_closes_the_sandboxes_that_outlive_their_connections() -> None:
    served = Served(SETTINGS)
    with served.running as served.address:
        async with over_http(served.address) as client:
            await client.call_tool('python', {'code': '1', 'session': 'new'})
        assert served.sandboxes == 1
    assert served.sandboxes == 0


async def test_a_session_keeps_its_variables_and_sees_no_other_and_ends_with_its_client(served: Served) -> None:
    async with over_http(served.address) as one:
        assert await run(one, 'x = 41\nprint("set")') == 'Output:\nset'
        async with over_http(served.address) as other:
            assert "name 'x' is not defined" in await run(other, 'x')
            assert await run(one, 'x + 1') == 'Value:\n42'
            assert served.sandboxes == 2
        await until(lambda: served.sandboxes == 1)
    await until(lambda: served.sandboxes == 0)


async def test_a_client_of_the_protocol_without_sessions_passes_on_an_id(served: Served) -> None:
    async with over_http(served.address, 'auto') as client:
        listed = await client.list_tools()
        assert listed.tools[0].input_schema['properties'].keys() == {'code', 'session'}
        first = await run(client, 'x = 41\nx')
        value, _, session = first.partition('\nsession: ')
        assert value == 'Value:\n41'
        assert await run(client, 'x + 1', session=session) == f'Value:\n42\nsession: {session}'
        assert "name 'x' is not defined" in await run(client, 'x'), 'a new session'
        assert (await run(client, 'x', session='guessed')).startswith('there is no such session')


async def test_pictures_come_as_images_and_other_displays_as_text(served: Served) -> None:
    async with over_http(served.address) as client:
        result = await client.call_tool('python', {'code': PICTURE})
    [image] = [part for part in result.content if isinstance(part, ImageContent)]
    assert (image.mime_type, image.data) == ('image/png', base64.b64encode(b'\x89PNG picture').decode())
    assert text_of(result) == "'words'\nDisplayed to the user: 1 image"


async def test_long_output_is_truncated_and_stays_in_a_variable(served: Served) -> None:
    async with over_http(served.address) as client:
        assert 'the whole is in the variable output_1 …]' in await run(client, 'print("word " * 50_000)')
        assert await run(client, 'len(output_1)') == 'Value:\n250001'


async def test_cancelling_a_call_stops_its_cell(served: Served) -> None:
    async with over_http(served.address) as client:
        assert await run(client, 'x = 1') == 'The code ran without an error and printed nothing.'
        started = asyncio.Event()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            if message == 'started':
                started.set()

        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def stop() -> None:
                    await started.wait()
                    scope.cancel()

                group.start_soon(stop)
                forever = {'code': 'x = 2\nprint("started")\nwhile True: pass'}
                await client.call_tool('python', forever, progress_callback=hear)
        assert await run(client, 'x') == 'Value:\n1', 'the next cell runs, with the variables of before'


@with_settings(idle_seconds=1.0)
async def test_the_sandbox_of_a_client_that_never_closes_ends_when_it_is_not_used(served: Served) -> None:
    async with over_http(served.address) as client:
        await run(client, 'x = 1')
        await until(lambda: served.sandboxes == 0)
        assert 'The sandbox of this session was closed' in await run(client, '"x" in globals()')


@with_settings(sandboxes=1)
async def test_the_number_of_sessions_is_bounded(served: Served) -> None:
    async with httpx2.AsyncClient(headers=HEADERS) as http:
        assert (await http.post(f'{served.address}/mcp', json=HELLO)).status_code == 200
        assert (await http.post(f'{served.address}/mcp', json=HELLO)).status_code == 503
    async with over_http(served.address, 'auto') as client:
        assert 'session: ' in await run(client, '1')
        assert (await run(client, '1')).startswith('there are too many sandboxes')


async def test_bad_arguments_and_huge_code_get_an_answer_that_says_what_is_wrong(served: Served) -> None:
    async with over_http(served.address) as client:
        for arguments, reason in (
            ({}, 'code: missing'),
            ({'code': 7}, 'code: '),
            ({'code': 'x = 1', 'other': 2}, 'other: there is no such parameter'),
            ({'code': '#' * 1_000_001}, 'the code has 1,000,001 characters'),
            ({'code': 'x = ('}, 'SyntaxError'),
            ({'code': 'a\0b'}, 'null byte'),
        ):
            result = await client.call_tool('python', arguments)
            assert result.is_error, arguments
            assert reason in text_of(result)
        with pytest.raises(MCPError, match='Unknown tool: nothing'):
            await client.call_tool('nothing', {})


async def test_requests_of_wrong_size_host_and_origin_are_refused(served: Served) -> None:
    async with httpx2.AsyncClient(headers=HEADERS) as http:
        url = f'{served.address}/mcp'
        for headers, status in (({'host': 'evil.example'}, 403), ({'origin': 'http://evil.example'}, 403)):
            assert (await http.post(url, json=HELLO, headers=headers)).status_code == status
        assert (await http.post(url, content=b'x' * (SERVICE.body_bytes + 1))).status_code == 413
        assert (await http.post(url, content=b'{')).status_code == 400
        assert (await http.post(url, json=HELLO)).status_code == 200


@with_settings(keys=KEYS)
async def test_a_key_is_needed_and_a_session_is_of_its_key_alone(served: Served) -> None:
    async with httpx2.AsyncClient(headers=HEADERS) as http:
        url = f'{served.address}/mcp'
        assert (await http.post(url, json=HELLO)).status_code == 401
        assert (await http.post(url, json=HELLO, headers={'authorization': 'Bearer wrong'})).status_code == 401
        first, second = ({'authorization': f'Bearer {key}'} for key in KEYS)
        session = (await http.post(url, json=HELLO, headers=first)).headers['mcp-session-id']
        asking = {**HELLO, 'method': 'tools/list', 'params': {}}
        for headers, status in ((first, 200), (second, 404)):
            answer = await http.post(url, json=asking, headers={**headers, 'mcp-session-id': session})
            assert answer.status_code == status
    async with over_http(served.address, 'auto', first) as owner, over_http(served.address, 'auto', second) as other:
        handle = (await run(owner, '1')).partition('session: ')[2]
        assert (await run(other, '1', session=handle)).startswith('there is no such session')
