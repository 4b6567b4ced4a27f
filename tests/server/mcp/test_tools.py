"""Agents, flows, the tool library and the run history, for an MCP client in this process."""

import asyncio
import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents, ToolListChangedNotification

from habilis import Agent, ScriptedModel, Workflow, flow, step, tool
from habilis.core.errors import SettingsError
from habilis.forge.library.library import Library
from habilis.journal.runs import list_runs
from habilis.journal.stores.urls import open_store
from habilis.server.mcp.protocol import McpService
from habilis.server.mcp.settings import McpSettings
from tests.forge.samples import double
from tests.server.mcp.clients import names, text_of
from tests.waiting import until


def code(text: str) -> str:
    """A reply with code."""
    return f'```python\n{text}\n```'


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The journal of agents and flows that name none."""
    place = str(tmp_path / 'runs.db')
    monkeypatch.setenv('HABILIS_JOURNAL', place)
    return place


async def state_of_runs(journal: str) -> list[str]:
    """The states of all recorded runs."""
    store = open_store(journal)
    try:
        return [each.state for each in await list_runs(store)]
    finally:
        await store.close()


async def until_stopped(journal: str) -> None:
    """Wait until the newest run is over, without a result."""
    while (await state_of_runs(journal))[0] == 'running':  # noqa: ASYNC110 - of a file
        await asyncio.sleep(0.01)
    assert (await state_of_runs(journal))[0] == 'stopped'


async def test_an_agent_is_a_tool_that_reports_its_steps(journal: str) -> None:
    agent = Agent(ScriptedModel([code('print(n)'), code('final_answer({"double": n * 2})')]), name='doubler')
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    async with agent, Client(McpService(McpSettings(), [agent])) as client:
        assert names((await client.list_tools()).tools) == ['python', 'doubler']
        arguments = {'task': 'Double n.', 'variables': {'n': 21}}
        result = await client.call_tool('doubler', arguments, progress_callback=hear)
    assert (text_of(result), result.structured_content) == ('{"double": 42}', {'double': 42})
    assert heard  # the latest: a client that is slower than the agent misses some
    assert {text and text.partition(': ')[2] for text in heard} <= {'doubler thinks', 'doubler runs code'}
    assert await state_of_runs(journal) == ['done']


async def test_cancelling_the_call_of_an_agent_stops_its_run(journal: str) -> None:
    began = asyncio.Event()

    @tool
    async def wait() -> None:
        """Wait for ever."""
        began.set()
        await asyncio.Event().wait()

    agent = Agent(ScriptedModel([code('await wait()')]), name='waiter', tools=[wait])
    async with agent, Client(McpService(McpSettings(), [agent])) as client:
        await _cancel_when(began, client, 'waiter', {'task': 'Wait.'})
        await until_stopped(journal)


async def test_a_flow_is_a_tool_with_its_own_parameters_and_progress_and_can_be_cancelled(journal: str) -> None:
    step_done = asyncio.Event()

    @step
    async def add(left: int, right: int) -> int:
        return left + right

    @flow
    async def total(numbers: list[int], wait: bool = False) -> int:
        """The sum of numbers."""
        result = 0
        for number in numbers:
            result = await add(result, number)
        if wait:
            await asyncio.Event().wait()
        return result

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        if message == 'add#1 done':
            step_done.set()

    async with Client(McpService(McpSettings(), [total])) as client:
        described = (await client.list_tools()).tools[1]
        assert (described.name, described.description) == ('total', 'The sum of numbers.')
        assert described.input_schema['required'] == ['numbers']
        assert text_of(await client.call_tool('total', {'numbers': [1, 2, 3]})) == '6'
        wrong = await client.call_tool('total', {'numbers': 'many'})
        assert wrong.is_error
        assert 'numbers: ' in text_of(wrong)
        await _cancel_when(step_done, client, 'total', {'numbers': [1], 'wait': True}, hear)
        await until_stopped(journal)


async def test_an_error_of_a_program_is_an_answer_for_the_model() -> None:
    workflow = Workflow('broken')

    @workflow.step
    def fail() -> int:
        msg = 'no more paper'
        raise OSError(msg)

    async with Client(McpService(McpSettings(), [workflow])) as client:
        result = await client.call_tool('broken', {})
    assert result.is_error
    assert 'OSError: no more paper' in text_of(result)


def test_two_tools_of_one_name_and_what_is_no_app_are_refused() -> None:
    agent = Agent(ScriptedModel([]), name='python')
    with pytest.raises(SettingsError, match="there are two tools 'python'"):
        McpService(McpSettings(), [agent])
    with pytest.raises(TypeError, match='neither an Agent nor a Flow'):
        McpService(McpSettings(), [print])  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize('mode', ['legacy', 'auto'])
async def test_tools_of_the_library_are_found_and_called_and_a_new_one_is_announced(tmp_path: Path, mode: str) -> None:
    library = Library(tmp_path / 'library')
    library.add(double())
    changed = asyncio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            changed.set()

    server = McpService(McpSettings(library=library))
    async with Client(server, mode=mode, message_handler=hear) as client:
        assert names((await client.list_tools()).tools) == ['python', 'find_tools', 'call_tool', 'double']
        assert 'def double(number: int) -> int' in text_of(await client.call_tool('find_tools', {'query': 'twice'}))
        for name, arguments in (
            ('double', {'number': 4}),
            ('call_tool', {'name': 'double', 'arguments': {'number': 4}}),
        ):
            assert text_of(await client.call_tool(name, arguments)) == '8'
        wrong = await client.call_tool('call_tool', {'name': 'dobule', 'arguments': {}})
        assert text_of(wrong) == "there is no tool 'dobule'; similar: double"
        if mode == 'legacy':
            library.add(double('triple', factor=3))
            await until(changed.is_set)
        else:
            async with client.listen(tools_list_changed=True) as events:
                library.add(double('triple', factor=3))
                await anext(aiter(events))
        assert 'triple' in names((await client.list_tools()).tools)


async def read_json(client: Client, uri: str) -> Any:
    """A resource that is JSON."""
    [content] = (await client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    return json.loads(content.text)


async def test_recorded_runs_are_resources(journal: str) -> None:
    async with Agent(ScriptedModel([code('final_answer(42)')])) as agent:
        result = await agent.run('What is 6 * 7?', run_id='run/one')
    assert result.output == 42
    async with Client(McpService(McpSettings(open_journal=lambda: open_store(journal)))) as client:
        listed = (await client.list_resources()).resources
        assert [(one.uri, one.title) for one in listed] == [
            ('habilis://runs', None),
            ('habilis://runs/run%2Fone', 'What is 6 * 7?'),
        ]
        [template] = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == 'habilis://runs/{id}'
        [runs, one] = [await read_json(client, each.uri) for each in listed]
        assert [(run['run'], run['status']) for run in runs] == [('run/one', 'done')]
        assert one['agents'][0]['steps'][0]['code'] == 'final_answer(42)'
        with pytest.raises(MCPError, match='Resource not found'):
            await client.read_resource('habilis://runs/other')


async def test_a_server_without_a_journal_has_no_resources() -> None:
    async with Client(McpService(McpSettings())) as client:
        assert client.server_capabilities.resources is None


async def _cancel_when(
    event: asyncio.Event, client: Client, name: str, arguments: dict[str, object], hear: ProgressFnT | None = None
) -> None:
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def stop() -> None:
                await event.wait()
                scope.cancel()

            group.start_soon(stop)
            await client.call_tool(name, arguments, progress_callback=hear)
