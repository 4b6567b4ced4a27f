"""pydantic-ai's own agent with a scripted model, and `run_python` for its tools."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext, Tool
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset

from habilis.integrations.pydantic_ai import RUN_PYTHON, HabilisCodeMode, HabilisToolset
from habilis.sandbox import Limits
from habilis.sandbox.options import SandboxSettings


class Script:
    """A model that runs these pieces of code, then answers; what it was told each time is in `seen`."""

    def __init__(self, *codes: str) -> None:
        self._codes = iter(codes)
        self.seen: list[Any] = []
        self.offered: dict[str, str] = {}
        self.model = FunctionModel(self._reply)

    def _reply(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.offered = {tool.name: tool.description or '' for tool in info.function_tools}
        parts = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        self.seen += [part.content for part in parts]
        code = next(self._codes, None)
        return ModelResponse(parts=[TextPart('done') if code is None else ToolCallPart(RUN_PYTHON, {'code': code})])


class Price(BaseModel):
    eur: float


async def price(ctx: RunContext[str], item: str) -> Price:
    """Look up a price."""
    if item == 'plum':
        msg = f'{ctx.deps} sells no plums'
        raise ModelRetry(msg)
    return Price(eur={'pear': 1.5, 'fig': 2.0}[item])


LOOP = """\
import asyncio
found = await asyncio.gather(price('pear'), price(item='fig'))
total = sum(each['eur'] for each in found)
print('prices', len(found))
total
"""


async def test_code_calls_the_tools_of_the_agent_and_keeps_its_variables_for_the_run() -> None:
    script = Script(LOOP, 'total * 2', 'found = total = None')
    agent = Agent(script.model, deps_type=str, tools=[price], capabilities=[HabilisCodeMode()])
    result = await agent.run('Add the prices', deps='shop')
    assert result.output == 'done'
    assert script.seen == [{'output': 'prices 2\n', 'result': 3.5}, {'result': 7.0}, {}]
    assert [*script.offered] == [RUN_PYTHON]
    assert 'async def price(*, item: str) -> Price' in script.offered[RUN_PYTHON]
    assert result.usage.tool_calls == 5
    again = Script('"total" in globals()')
    await agent.run('Again', deps='shop', model=again.model)
    assert again.seen == [{'result': False}]


async def test_a_toolset_alone_can_be_wrapped_and_tools_that_wait_for_a_person_stay_outside() -> None:
    script = Script('await price("fig")')
    erase = Tool(lambda: None, name='erase', description='Erase.', requires_approval=True)  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType,reportUnknownVariableType]
    toolset: HabilisToolset[str] = HabilisToolset(FunctionToolset([price, erase]))
    await Agent(script.model, deps_type=str, toolsets=[toolset]).run('Look', deps='shop')
    assert script.seen == [{'result': {'eur': 2.0}}]
    assert {*script.offered} == {RUN_PYTHON, 'erase'}


async def test_an_error_is_a_retry_of_the_model_with_what_was_printed_before() -> None:
    script = Script('print("before")\n1 / 0', 'await price("plum")', 'await price(2)', '"fine"')
    agent = Agent(script.model, deps_type=str, tools=[price], capabilities=[HabilisCodeMode()])
    assert (await agent.run('Fail', deps='shop')).output == 'done'
    division, plum, number, last = script.seen
    assert division.startswith('before\n')
    assert 'ZeroDivisionError: division by zero' in division
    assert 'shop sells no plums' in plum
    assert 'valid string' in number
    assert last == {'result': 'fine'}


async def test_code_that_fails_too_often_ends_the_run_as_other_tools_do() -> None:
    script = Script('1 / 0', '2 / 0')
    agent = Agent(script.model, capabilities=[HabilisCodeMode[object](max_retries=1)])
    with pytest.raises(UnexpectedModelBehavior, match='exceeded max retries count of 1'):
        await agent.run('Fail')


async def test_an_endless_loop_is_stopped_and_the_variables_stay() -> None:
    script = Script('kept = 42', 'kept = 0\nwhile True: pass', 'kept')
    limited = HabilisCodeMode[object](settings=SandboxSettings(limits=Limits(seconds=1)))
    await Agent(script.model, capabilities=[limited]).run('Loop')
    _, stopped, kept = script.seen
    assert 'the time limit of 1 s was reached' in stopped
    assert 'variables are as before this code' in stopped
    assert kept == {'result': 42}


async def test_code_cannot_read_a_file_of_the_host_as_a_tool_that_calls_exec_can(tmp_path: Path) -> None:
    secret = tmp_path / 'secret.txt'
    secret.write_text('host secret')
    code = f'from pathlib import Path\nfound = Path({str(secret)!r}).read_text()'

    def run_python(code: str) -> Any:
        variables: dict[str, Any] = {}
        exec(code, variables)
        return variables['found']

    theirs, ours = Script(code), Script(code)
    await Agent(theirs.model, tools=[run_python]).run('Read')
    await Agent(ours.model, capabilities=[HabilisCodeMode[object]()]).run('Read')
    assert theirs.seen == ['host secret']
    assert 'FileNotFoundError' in ours.seen[0]


async def test_runs_at_the_same_time_do_not_see_each_other() -> None:
    agent = Agent(capabilities=[HabilisCodeMode[object]()])
    scripts = [Script(f'mine = {number}', 'mine') for number in range(4)]
    await asyncio.gather(*(agent.run('Go', model=script.model) for script in scripts))
    assert [script.seen[1] for script in scripts] == [{'result': number} for number in range(4)]
