"""Runs with tools of MCP servers: real ones, several in one cell, killed in the middle."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from habilis import Agent, ScriptedModel
from habilis.core.errors import ToolServerError
from habilis.tools import McpServer
from tests.agent.scripts import block, sent
from tests.requirements import require, require_node
from tests.tools.mcp.raw import command, lines, raw_server, tool, write_tools
from tests.waiting import until

ROOT = Path(__file__).parents[2]
CITY = {'type': 'object', 'properties': {'city': {'type': 'string'}}, 'required': ['city']}


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HABILIS_DATA', str(tmp_path / 'data'))


async def test_three_real_servers_work_together_in_one_cell(tmp_path: Path) -> None:
    git = require('git')
    filesystem = require_node('mcp-server-filesystem')
    for city in ('', 'Rome', 'Oslo'):
        words = ['-c', 'user.name=A', '-c', 'user.email=a@b', 'commit', '-qm', city, '--allow-empty']
        subprocess.run([git, *(words if city else ['init', '-q'])], cwd=tmp_path, check=True)
    code = f"""
commits = git_log({str(tmp_path)!r}, max_count=5)
found = [city for city in ('Oslo', 'Paris', 'Rome') if city in commits]
for city in found:
    noon = convert_time('UTC', '12:00', f'Europe/{{city}}')['target']
    write_file({str(tmp_path)!r} + f'/{{city}}.txt', noon['timezone'])
final_answer([read_text_file({str(tmp_path)!r} + f'/{{city}}.txt') for city in found])
"""
    servers = [
        McpServer([sys.executable, '-m', 'mcp_server_git']),
        McpServer([sys.executable, '-m', 'mcp_server_time']),
        McpServer([*filesystem, str(tmp_path)], name='files'),
    ]
    async with Agent(ScriptedModel([block(code)]), tools=servers, journal='off') as agent:
        result = await agent.run('When is noon where the commits are from?')
    assert result.output == [{'content': 'Europe/Oslo'}, {'content': 'Europe/Rome'}]
    assert (tmp_path / 'Rome.txt').read_text() == 'Europe/Rome'


async def test_the_example_server_of_the_protocol_is_used() -> None:
    server = McpServer([*require_node('mcp-server-everything'), 'stdio'], name='everything')
    code = block("print(echo('Rome'))\nfinal_answer(get_sum(2, 3))")
    async with Agent(ScriptedModel([code]), tools=[server], journal='off') as agent:
        result = await agent.run('go')
    assert 'is 5' in str(result.output)
    assert 'Echo: Rome' in str(result.steps[0].cell)


async def test_one_connection_serves_all_runs_of_an_agent(tmp_path: Path) -> None:
    server = raw_server(tmp_path, tool('echo', schema=CITY))
    model = ScriptedModel([block("final_answer(echo('Rome'))")] * 2)
    async with Agent(model, tools=[server], journal='off') as agent:
        for _ in range(2):
            assert (await agent.run('go')).output == '{"city": "Rome"}'
    assert lines(tmp_path, 'starts') == ['started']
    assert 'def echo(city: str) -> str:' in sent(model, 0) or 'def echo' in str(model.requests[0])


def test_a_server_works_from_run_sync_too(tmp_path: Path) -> None:
    server = raw_server(tmp_path, tool('echo', schema=CITY))
    with Agent(ScriptedModel([block("final_answer(echo('Rome'))")] * 2), tools=[server], journal='off') as agent:
        for _ in range(2):
            assert agent.run_sync('go').output == '{"city": "Rome"}'
    assert lines(tmp_path, 'starts') == ['started']


async def test_a_server_that_dies_costs_one_error_and_not_the_run(tmp_path: Path) -> None:
    server = raw_server(tmp_path, tool('bad', 'die'), tool('echo', schema=CITY))
    replies = [block('bad()'), block("final_answer(echo('Rome'))")]
    async with Agent(model := ScriptedModel(replies), tools=[server], journal='off') as agent:
        assert (await agent.run('go')).output == '{"city": "Rome"}'
    assert 'ToolError: the MCP server raw failed during the call: it ended with exit code 3' in sent(model, 1)


async def test_tools_that_a_server_adds_are_told_to_the_model(tmp_path: Path) -> None:
    server = raw_server(tmp_path, tool('grow', f'become {json.dumps([tool("grown")])}'))
    model = ScriptedModel([block('grow()'), block('1'), block('final_answer(grown())')])
    async with Agent(model, tools=[server], journal='off') as agent:
        run = await agent.start('go')
        await run.step()
        await until(lambda: server.listing.tools[0].name == 'grown')
        await run.step()
        result = await run.step()
    assert result is not None
    assert result.output == '{}'
    assert 'grown' in sent(model, 1)


SAMPLING = {
    'method': 'sampling/createMessage',
    'params': {
        'messages': [{'role': 'user', 'content': {'type': 'text', 'text': 'Name a city.'}}],
        'systemPrompt': 'Be brief.',
        'maxTokens': 100_000,
    },
}


@pytest.mark.parametrize(('agreed', 'answer'), [('y', 'Rome'), ('n', None)])
async def test_a_server_asks_the_model_of_the_agent_if_the_user_agrees(
    tmp_path: Path, agreed: str, answer: str | None
) -> None:
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return agreed

    server = raw_server(tmp_path, tool('think', f'ask {json.dumps(SAMPLING)}'), ask=ask)
    replies = [block('said = think()'), *(['Rome'] if answer else []), block('final_answer(said)')]
    async with Agent(model := ScriptedModel(replies), tools=[server], journal='off') as agent:
        result = await agent.run('go')
    said = json.loads(str(result.output))
    assert (said['content']['text'] if said else None) == answer
    question = 'The MCP server raw asks your model, for at most 2,000 tokens:\nBe brief.\nName a city.\nMay it? [y/N]'
    assert asked == [question]
    if answer:
        assert [(one.role, one.text) for one in model.requests[1].messages] == [
            ('system', 'Be brief.'),
            ('user', 'Name a city.'),
        ]
        assert model.requests[1].options.max_tokens == 2000


async def test_a_server_asks_a_model_a_few_times_only(tmp_path: Path) -> None:
    def yes(question: str) -> str:
        return 'y'

    server = raw_server(tmp_path, tool('think', f'ask {json.dumps(SAMPLING)}'), ask=yes)
    replies = [block('said = [think() for _ in range(12)]\nfinal_answer(said)'), *['Rome'] * 10]
    async with Agent(ScriptedModel(replies), tools=[server], journal='off') as agent:
        result = await agent.run('go')
    assert result.output is not None
    assert [one == 'null' for one in result.output] == [*[False] * 10, True, True]


async def test_a_run_with_a_server_that_does_not_start_is_not_started(tmp_path: Path) -> None:
    async with Agent(ScriptedModel([]), tools=[McpServer('no-such-program')], journal=tmp_path / 'runs.db') as agent:
        with pytest.raises(ToolServerError, match='cannot be started'):
            await agent.run('go')


PROGRAM = """
import json, sys
from habilis import Agent, ScriptedModel
from habilis.tools import McpServer

words, journal, code = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
server = McpServer(words, name='raw')
agent = Agent(ScriptedModel([code]), tools=[server], journal=journal)
agent.run_sync('go', run_id='run-1')
"""


@pytest.mark.one_protocol
async def test_a_killed_run_is_resumed_without_a_call_twice(tmp_path: Path) -> None:
    path = write_tools(tmp_path, tool('echo', schema=CITY), tool('hang', 'hang'))
    code = block("found = [echo(city) for city in ('Rome', 'Oslo')]\nhang()\nfinal_answer(found)")
    arguments = [json.dumps(command(path)), str(tmp_path / 'runs.db'), code]
    process = subprocess.Popen([sys.executable, '-c', PROGRAM, *arguments], cwd=ROOT)  # noqa: ASYNC220
    await until(lambda: len(lines(tmp_path, 'calls')) == 3 or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    process.wait()
    write_tools(tmp_path, tool('echo', schema=CITY), tool('hang'))
    server = McpServer(command(path), name='raw')
    async with Agent(ScriptedModel([code]), tools=[server], journal=tmp_path / 'runs.db') as agent:
        waiting = await agent.resume('run-1')
        assert waiting.ended == 'approval', 'whether the call that was under way was done, only a person knows'
        await agent.answer('run-1', {'again': True})
        result = await agent.resume('run-1')
    assert result.output == ['{"city": "Rome"}', '{"city": "Oslo"}']
    assert [line.split()[0] for line in lines(tmp_path, 'calls')] == ['echo', 'echo', 'hang', 'hang']
