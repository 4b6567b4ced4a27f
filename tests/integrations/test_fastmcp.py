"""FastMCP's own server and client in code mode, and the sandbox that runs the code."""

import asyncio
import operator
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.experimental.transforms.code_mode import CodeMode, SandboxProvider

from habilis.integrations.fastmcp import HabilisProvider
from habilis.sandbox import Limits
from tests.cases import each_case


@asynccontextmanager
async def served(provider: HabilisProvider | None = None) -> AsyncGenerator[FastMCP[Any]]:
    """A server in code mode with one tool that works and one that fails."""
    async with provider or HabilisProvider() as sandboxes:
        checked: SandboxProvider = sandboxes  # the protocol of FastMCP
        server: FastMCP[Any] = FastMCP('shop', transforms=[CodeMode(sandbox_provider=checked)])

        @server.tool
        async def price(item: str) -> dict[str, float]:  # pyright: ignore[reportUnusedFunction]
            """Look up a price."""
            return {'eur': {'pear': 1.5, 'fig': 2.0}[item]}

        yield server


def legacy(server: FastMCP[Any]) -> Client[Any]:
    """A client of a version of MCP that has sessions."""
    return Client(server, mode='legacy')


async def execute(client: Client[Any], code: str) -> str:
    result = await client.call_tool('execute', {'code': code})
    return ''.join(getattr(block, 'text', '') for block in result.content)


LOOP = """\
import asyncio
found = await asyncio.gather(*[call_tool('price', {'item': item}) for item in ('pear', 'fig')])
if found:
    return {
        'total': sum(each['eur'] for each in found),
    }
print('not reached')
"""


async def test_code_calls_tools_in_a_loop_returns_and_keeps_its_variables() -> None:
    async with served() as server, legacy(server) as client, legacy(server) as other:
        assert {tool.name for tool in await client.list_tools()} == {'search', 'get_schema', 'execute'}
        assert await execute(client, LOOP) == '{"total":3.5}'
        assert await execute(client, 'len(found)') == '2'
        assert await execute(client, 'print("only printed")') == 'only printed\n'
        assert await execute(other, 'return "found" in globals()') == 'false'


async def test_an_error_of_the_code_or_of_a_tool_reaches_the_client() -> None:
    async with served() as server, Client(server) as client:
        with pytest.raises(ToolError, match=r'before\n(.|\n)*ZeroDivisionError'):
            await execute(client, 'print("before")\n1 / 0')
        with pytest.raises(ToolError, match=r"call_tool\('price'\) failed: Error calling tool 'price'"):
            await execute(client, "await call_tool('price', {'item': 'plum'})")
        with pytest.raises(ToolError, match='Unknown tool: fly'):
            await execute(client, "await call_tool('fly', {})")
        caught = "try:\n    await call_tool('fly', {})\nexcept ToolError as error:\n    return str(error)"
        assert 'Unknown tool' in str(await execute(client, caught))


async def test_an_endless_loop_is_stopped_and_the_variables_stay() -> None:
    async with served(HabilisProvider(limits=Limits(seconds=1))) as server, legacy(server) as client:
        await execute(client, 'kept = 42')
        with pytest.raises(ToolError, match=r'the time limit of 1 s was reached\n.*variables are as before'):
            await execute(client, 'kept = 0\nwhile True: pass')
        assert await execute(client, 'kept') == '42'


async def test_code_cannot_read_a_file_of_the_host(tmp_path: Path) -> None:
    (tmp_path / 'secret.txt').write_text('host secret')
    async with served() as server, Client(server) as client:
        with pytest.raises(ToolError, match='FileNotFoundError'):
            await execute(client, f'return open({str(tmp_path / "secret.txt")!r}).read()')


async def test_python_is_whole_where_that_of_the_default_is_a_part() -> None:
    code = 'import collections\nclass Words(collections.Counter):\n    pass\nreturn Words("abba")["b"]'
    async with served() as server, Client(server) as client:
        assert await execute(client, code) == '2'
    pytest.importorskip('pydantic_monty')
    async with Client(FastMCP('default', transforms=[CodeMode()])) as client:
        with pytest.raises(ToolError, match='Error calling tool'):
            await execute(client, code)


async def test_a_client_without_sessions_has_a_new_sandbox_for_each_call_unless_an_owner_is_named() -> None:
    async with served() as server, Client(server) as client:
        await execute(client, 'x = 1')
        assert await execute(client, '"x" in globals()') == 'false'
    async with served(HabilisProvider(owner=lambda: 'me')) as server, Client(server) as client:
        await execute(client, 'x = 1')
        assert await execute(client, 'x') == '1'


async def test_the_sandbox_that_was_not_used_for_longest_is_closed() -> None:
    owners = iter('aabba')
    async with HabilisProvider(owner=lambda: next(owners), sandboxes=1) as provider:
        assert [await provider.run(code) for code in ('x = 1', 'x', 'x = 2', 'x')] == [None, 1, None, 2]
        assert await provider.run('"x" in globals()') is False


async def test_a_provider_works_without_a_server() -> None:
    async with HabilisProvider(owner=lambda: None) as provider:
        add = {'add': operator.add}
        assert await provider.run('return add(x, 1)', inputs={'x': 2}, external_functions=add) == 3
        assert await asyncio.gather(provider.run('0'), provider.run('return None')) == [0, None]


@each_case(
    'code, value',
    [
        ('return', None),
        ('return 1, 2', (1, 2)),
        ('x = "é"; return x', 'é'),
        ('if True: return (\n  1 +\n  2)', 3),
        ('for n in range(9):\n    if n == 4:\n        return n', 4),
        ('try:\n    return 1\nexcept Exception:\n    return 2\nfinally:\n    y = 5', 1),
        ('def f():\n    return 7\nf()', 7),
        ('async def f():\n    return 8\nreturn await f()', 8),
    ],
)
def test_return_works_at_top_level(code: str, value: object) -> None:
    async def run() -> object:
        async with HabilisProvider(owner=lambda: None) as provider:
            return await provider.run(code)

    assert asyncio.run(run()) == value


async def test_code_that_is_no_python_is_reported_by_the_sandbox() -> None:
    async with HabilisProvider(owner=lambda: None) as provider:
        with pytest.raises(ToolError, match='SyntaxError'):
            await provider.run('return return')
