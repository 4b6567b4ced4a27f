"""Runs with more tools than fit the prompt: the model reads of toolsets, searches, and calls tools by name."""

import itertools
import json

import pytest

from benchmarks.mcp.sample_tools import toolsets
from habilis import Agent, tool
from habilis.core.settings import Settings
from habilis.journal.stores.memory import MemoryStore
from habilis.models import FunctionCall, Reply, ScriptedModel
from habilis.models.tokens import count_message_tokens
from habilis.tools import Toolset
from tests.agent.scripts import block, sent

SEARCH = block("print(search_tools('bugs and feature requests of a repository'))")
CALL = block("print(code_create_issue('crash', 'it fails', 'bug'))")


@tool
def own_tool(number: int) -> int:
    """Twice the number."""
    return 2 * number


def issue_tools() -> Toolset:
    """Tools that do something, among very many."""

    def code_create_issue(title: str, body: str, labels: str) -> str:
        """Create a new issue: bugs and feature requests of a repository."""
        return f'created {title}'

    def code_get_issue(number: int) -> str:
        """Get an issue of a repository, with bugs and feature requests."""
        return f'issue {number}'

    return Toolset('code', [code_create_issue, code_get_issue], description='Issues and their comments')


def many() -> list[Toolset]:
    """A thousand tools, without those of the first toolset, which are replaced."""
    return [Toolset('code', [*issue_tools().tools, *toolsets(1000)[0].tools[10:]]), *toolsets(1000)[1:]]


async def test_a_thousand_tools_are_named_by_toolset_and_found_by_search_and_called_by_name() -> None:
    model = ScriptedModel([SEARCH, CALL, block('final_answer(own_tool(4))')])
    async with Agent(model, tools=[own_tool, *many()], journal='off') as agent:
        result = await agent.run('Report the crash')
    system = model.requests[0].messages[0].text
    assert result.output == 8
    assert 'def own_tool' in system, 'a tool given by itself is described'
    assert 'def search_tools' in system
    assert 'def describe_tool' in system
    assert '- code (17): ' in system
    assert 'def code_create_issue' not in system
    assert count_message_tokens(model.requests[0].messages) <= 1500
    assert 'def code_create_issue(title: str, body: str, labels: str) -> str:' in (result.steps[0].observation or '')
    assert result.steps[1].observation == 'Output:\ncreated crash'


async def test_what_was_sent_before_stays_a_prefix_so_that_a_cached_prompt_is_used_again() -> None:
    model = ScriptedModel([SEARCH, CALL, block('print(code_get_issue(3))'), block('final_answer(1)')])
    async with Agent(model, tools=many(), journal='off') as agent:
        await agent.run('Report the crash')
    requests = [[(message.role, message.text) for message in request.messages] for request in model.requests]
    for earlier, later in itertools.pairwise(requests):
        assert later[: len(earlier)] == earlier
    functions = [request.options.functions for request in model.requests]
    assert all(offered == functions[0] for offered in functions)


async def test_the_stub_of_a_tool_that_was_called_unseen_joins_the_observation_once() -> None:
    model = ScriptedModel(
        [block('print(code_get_issue(3))'), block('print(code_get_issue(4))'), block('final_answer(1)')]
    )
    async with Agent(model, tools=many(), journal='off') as agent:
        result = await agent.run('go')
    first, second, _ = (step.observation or '' for step in result.steps)
    assert first.startswith(
        'Output:\nissue 3\nTools that were called for the first time:\n```python\ndef code_get_issue('
    )
    assert second == 'Output:\nissue 4'


async def test_describe_tool_shows_all_about_one_tool_and_corrects_a_wrong_name() -> None:
    code = "print(describe_tool('code_get_issue'))\ndescribe_tool('code_get_isue')"
    model = ScriptedModel([block(code), block('final_answer(1)')])
    async with Agent(model, tools=many(), journal='off') as agent:
        result = await agent.run('go')
    seen = result.steps[0].observation or ''
    assert 'def code_get_issue(number: int) -> str:\n    """Get an issue of a repository' in seen
    assert "there is no tool called 'code_get_isue'; did you mean code_get_issue" in seen


async def test_small_toolsets_stay_and_the_budget_is_a_setting() -> None:
    model = ScriptedModel([block('final_answer(1)')] * 3)
    for tokens, described in ((100_000, True), (1000, False)):
        async with Agent(
            model, tools=[issue_tools(), toolsets(1000)[1]], journal='off', settings=Settings(tool_tokens=tokens)
        ) as agent:
            await agent.run('go')
        system = model.requests[-1].messages[0].text
        assert 'def code_get_issue' in system
        assert ('def pipelines_list_runs' in system) is described
        assert ('def search_tools' in system) is not described
        assert ('- pipelines (25): ' in system) is not described


async def test_a_model_that_calls_functions_itself_searches_and_calls_by_name() -> None:
    replies = [
        _calls('search_tools', query='bugs and feature requests of a repository'),
        _calls('call_tool', name='code_create_issue', arguments={'title': 'crash', 'body': 'b', 'labels': 'bug'}),
        _calls('call_tool', name='code_creat_issue', arguments={}),
        _calls('code_get_issue', number=3),
        'done',
    ]
    model = ScriptedModel(replies, functions=True)
    async with Agent(model, tools=many(), python=False, journal='off') as agent:
        result = await agent.run('Report the crash')
    names = [function.name for function in model.requests[0].options.functions]
    assert names == ['search_tools', 'describe_tool', 'call_tool']
    assert '- code (17): ' in model.requests[0].messages[0].text
    found, created, wrong, got, _ = (step.observation or '' for step in result.steps)
    assert 'code_create_issue: Create a new issue' in found
    assert '"title": {"type": "string"}' in found
    assert created == 'created crash'
    assert "There is no function 'code_creat_issue'; there is code_create_issue" in wrong
    assert got == 'issue 3'
    assert [call.tool for step in result.steps for call in step.calls] == [
        'search_tools', 'code_create_issue', 'code_get_issue',
    ]  # fmt: skip


def _calls(name: str, /, **arguments: object) -> Reply:
    return Reply(calls=(FunctionCall(id='1', name=name, arguments=json.dumps(arguments)),), finish='calls')


async def test_a_resumed_run_calls_a_tool_through_a_function_of_an_earlier_cell() -> None:
    store, died = MemoryStore(), ConnectionError('died')
    define = block('def report(n):\n    return code_get_issue(n)\nprint(report(1))')
    model = ScriptedModel([define, died])
    agent = Agent(model, tools=many(), journal=store)
    with pytest.raises(ConnectionError):
        await agent.run('go', run_id='many')
    again = ScriptedModel([block('final_answer(report(2))')])
    async with Agent(again, tools=many(), journal=store) as agent:
        result = await agent.resume('many')
    assert result.output == 'issue 2'
    assert again.requests[0].messages[0] == model.requests[0].messages[0]


async def test_subagents_find_the_tools_too() -> None:
    model = ScriptedModel(
        [
            block("final_answer(await delegate('Get issue 7'))"),
            SEARCH,
            block('final_answer(code_get_issue(7))'),
        ]
    )
    async with Agent(model, tools=many(), helpers=True, journal='off') as agent:
        result = await agent.run('go')
    assert result.output == 'issue 7'
    assert '- code (17): ' in model.requests[1].messages[0].text


async def test_a_small_model_reads_of_the_search_below_its_task_and_must_not_answer_without_a_tool() -> None:
    model = ScriptedModel([block('final_answer(1)'), SEARCH, block('final_answer(2)')], small=True)
    async with Agent(model, tools=many(), journal='off') as agent:
        result = await agent.run('go')
    assert '- search_tools(query: str) -> str' in model.requests[0].messages[-1].text
    assert 'search_tools' in (result.steps[0].observation or '')
    assert result.output == 2
    assert count_message_tokens(model.requests[0].messages) <= 1500


async def test_a_toolset_that_is_disabled_is_neither_named_nor_found_nor_called() -> None:
    model = ScriptedModel([SEARCH, SEARCH, block('code_get_issue(1)'), block('final_answer(1)')])
    async with Agent(model, tools=many(), journal='off') as agent:
        run = await agent.start('go')
        await run.step()
        run.toolbox.disable('code')
        await run.step()
        await run.step()
    assert '- code (' in sent(model, 0)
    assert '- code (' not in model.requests[1].messages[0].text
    assert 'code_create_issue' not in (run.steps[1].observation or '')
    assert 'code_get_issue was not called: it is disabled' in (run.steps[2].observation or '')
