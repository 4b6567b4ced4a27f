"""Runs find tools of a library, call them by name, and have new ones built."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from habilis import Agent, tool
from habilis.core.errors import AgentError
from habilis.forge.contract import Candidate
from habilis.forge.library.library import Library
from habilis.journal import Store
from habilis.journal.stores.memory import MemoryStore
from habilis.models import Message, ScriptedModel
from tests.forge.build.test_forge import Builder


def cell(code: str) -> str:
    """A reply with code."""
    return f'```python\n{code}\n```'


class Worker:
    """A scripted model that works on a task, and builds the tools that it asks for."""

    def __init__(self, *replies: str, **stages: str | list[str]) -> None:
        self._replies = list(replies)
        self.builder = Builder(**stages)
        self.systems: list[str] = []
        self.model = ScriptedModel(self.reply)

    def reply(self, messages: Sequence[Message]) -> str:
        """What it says."""
        if messages[0].role != 'system':
            return self.builder.reply(messages)
        self.systems.append(messages[0].text)
        return self._replies.pop(0)

    def agent(self, library: Library, store: Store) -> Agent[object]:
        """An agent with this model."""
        return Agent(self.model, library=library, journal=store)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """A library with one tool."""
    made = Library(tmp_path / 'library')
    code = 'def double(number: int) -> int:\n    """Return twice the number."""\n    return 2 * number\n'
    made.add(Candidate(name='double', code=code, tests='from tool import double\n'), tests=0)
    return made


@pytest.fixture
def store() -> Store:
    """Where runs are recorded."""
    return MemoryStore()


async def test_a_run_is_offered_tools_that_fit_its_task_and_calls_them(library: Library, store: Store) -> None:
    worker = Worker(cell('final_answer(double(21))'))
    async with worker.agent(library, store) as agent:
        result = await agent.run('What is twice 21, the double of it?')
    assert result.output == 42
    assert 'def double(number: int) -> int:' in worker.systems[0]
    assert [(used.name, used.calls) for used in library.usage.read()] == [('double', 1)]


async def test_a_small_model_reads_of_tools_that_fit_below_its_task_and_need_not_call_them(library: Library) -> None:
    model = ScriptedModel([cell('final_answer(42)')], small=True)
    async with Agent(model, library=library, journal='off') as agent:
        assert (await agent.run('What is twice 21, the double of it?')).output == 42
    note = model.requests[0].messages[-1].text
    assert '- double(number: int) -> int' in note
    assert 'make_tool' not in note


async def test_a_tool_that_does_not_fit_is_not_shown_but_found_on_request(library: Library, store: Store) -> None:
    worker = Worker(cell("print(search_tools('twice a number'))"), cell('final_answer(double(4))'))
    async with worker.agent(library, store) as agent:
        result = await agent.run('Solve this riddle')
    assert 'def double' not in worker.systems[0]
    assert 'def double(number: int) -> int:' in (result.steps[0].observation or '')
    assert result.output == 8


async def test_a_tool_is_built_and_called_in_the_next_cell(library: Library, store: Store) -> None:
    request = 'make_tool("Reverse a text", ["reverse_string(\'ab\') == \'ba\'"])'
    worker = Worker(cell(request), cell("final_answer(reverse_string('Python'))"))
    async with worker.agent(library, store) as agent:
        result = await agent.run('Write Python backwards')
    assert result.output == 'nohtyP'
    assert 'def reverse_string(text: str) -> str:' in (result.steps[0].observation or '')
    assert library.manifest('reverse_string').request == 'Reverse a text'
    assert worker.builder.stages[:2] == ['spec', 'tests']
    assert result.usage.requests == 2 + len(worker.builder.stages), 'a build counts for the run'


async def test_a_refused_tool_is_an_error_of_the_code(library: Library, store: Store) -> None:
    worker = Worker(cell("make_tool('Reverse a text')"), 'There is none.', spec='I cannot.', again='No.')
    async with worker.agent(library, store) as agent:
        result = await agent.run('Write Python backwards')
    assert 'no tool was built: no usable specification' in (result.steps[0].observation or '')
    assert result.output == 'There is none.'


async def test_a_run_that_died_after_a_build_calls_the_tool_when_it_is_resumed(library: Library, store: Store) -> None:
    first = Worker(cell("make_tool('Reverse a text')"))
    async with first.agent(library, store) as agent:
        with pytest.raises(IndexError):
            await agent.run('Write Python backwards', run_id='r')
    second = Worker(cell("final_answer(reverse_string('Python'))"))
    async with second.agent(Library(library.folder), store) as agent:
        result = await agent.resume('r')
    assert result.output == 'nohtyP'
    assert second.builder.stages == [], 'nothing is built twice'


def die_in_a_build(folder: Path) -> None:
    """Start a run whose process is killed while a tool is implemented."""
    worker = Worker(cell("make_tool('Reverse a text')"))

    def watch(messages: Sequence[Message]) -> str:
        if 'Implement this function' in messages[-1].text:
            os.kill(os.getpid(), signal.SIGKILL)
        return worker.reply(messages)

    agent = Agent(ScriptedModel(watch), library=folder / 'library', journal=f'sqlite:{folder / "runs.db"}')
    agent.run_sync('Write Python backwards', run_id='r')


async def test_a_run_that_was_killed_in_a_build_resumes_the_build(library: Library, tmp_path: Path) -> None:
    program = f'from {__name__} import *; die_in_a_build(Path({str(tmp_path)!r}))'
    killed = subprocess.run([sys.executable, '-c', program], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert library.names() == ['double'], 'nothing half-built is visible'
    worker = Worker(cell("final_answer(reverse_string('Python'))"))
    async with Agent(worker.model, library=library, journal=f'sqlite:{tmp_path / "runs.db"}') as agent:
        result = await agent.resume('r')
    assert result.output == 'nohtyP'
    assert {*worker.builder.stages} == {'implement'}, 'specification and tests are not asked for again'


async def test_names_of_the_run_win_over_those_of_the_library(library: Library, store: Store) -> None:
    @tool
    def double(number: int) -> str:
        """Not the one of the library."""
        return f'mine {number}'

    worker = Worker(cell('final_answer(double(1))'), cell('final_answer(double + 1)'))
    async with Agent(worker.model, library=library, journal=store, tools=[double]) as agent:
        assert (await agent.run('the double of 1')).output == 'mine 1'
    async with worker.agent(library, store) as agent:
        assert (await agent.run('the double of 1', variables={'double': 7})).output == 8


async def test_tools_that_worked_together_are_recorded_once_a_run(library: Library, store: Store) -> None:
    code = 'def halve(number: int) -> float:\n    """Return half of the number."""\n    return number / 2\n'
    library.add(Candidate(name='halve', code=code, tests='from tool import halve\n'), tests=0)
    for number in (3, 5):
        worker = Worker(cell(f'final_answer(halve(double({number})))'))
        async with worker.agent(library, store) as agent:
            await agent.run(f'double and halve {number}')
    [found] = library.usage.combinations()
    assert found.tools == ('double', 'halve')


async def test_ten_thousand_tools_cost_the_prompt_little(tmp_path: Path) -> None:
    library = Library(tmp_path)
    long = 'Return the number of things of a kind, which is said at great length here. ' * 20
    for number in range(50):
        code = f'def count_{number}(things: list[str]) -> int:\n    """{long}"""\n    return {number}\n'
        library.add(Candidate(name=f'count_{number}', code=code, tests='x = 1\n'), tests=0)
    worker = Worker('None.', 'None.')
    async with Agent(worker.model, library=library, journal='off') as agent:
        await agent.run('the number of things of a kind')
    async with Agent(worker.model, journal='off') as agent:
        await agent.run('the number of things of a kind')
    cost = len(worker.systems[0]) - len(worker.systems[1])
    assert cost < 600 * 3.2, 'characters per token, at least'


async def test_a_library_needs_code_and_a_folder() -> None:
    with pytest.raises(AgentError, match='called by code'):
        Agent('scripted:x', library=True, python=False)
    with pytest.raises(TypeError, match='library must be the folder of a tool library'):
        Agent('scripted:x', library=3)  # pyright: ignore[reportArgumentType]
    assert Agent('scripted:x', library=False)
