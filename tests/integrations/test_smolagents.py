"""smolagents' own `CodeAgent` with a scripted model, and the sandbox as its Python."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from habilis.integrations.smolagents import HabilisExecutor
from habilis.sandbox import Limits

smolagents: Any = importlib.import_module('smolagents')  # it has no types
tool: Any = smolagents.tool


class Script(smolagents.Model):
    """A model that replies with these pieces of code."""

    def __init__(self, *codes: str) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self._codes = iter(codes)
        self.seen = ''
        """All that it was sent at last."""

    def generate(self, messages: Any, **_: Any) -> Any:
        self.seen = '\n'.join(part['text'] for message in messages for part in message.content)
        content = f'<code>\n{next(self._codes)}\n</code>'
        return smolagents.ChatMessage(role='assistant', content=content)


def agent_of(script: Script, executor: HabilisExecutor | None, *tools: Any, **options: Any) -> Any:
    quiet = smolagents.LogLevel.OFF
    return smolagents.CodeAgent([*tools], script, executor=executor, verbosity_level=quiet, **options)


@pytest.fixture
def executor() -> Iterator[HabilisExecutor]:
    made = HabilisExecutor(limits=Limits(seconds=20))
    yield made
    made.cleanup()


@tool
def price(item: str) -> dict[str, float]:
    """Look up a price.

    Args:
        item: what to look up
    """
    return {'eur': {'pear': 1.5, 'fig': 2.0}[item]}


def test_variables_stay_tools_are_called_and_the_final_answer_ends_the_code(executor: HabilisExecutor) -> None:
    script = Script(
        'import json\ntotal = price("pear")["eur"]\nprint("so far", total)',
        'total += price(item="fig")["eur"]\nif total:\n    final_answer({"total": total})\nprint("not reached")',
    )
    with agent_of(script, executor, price) as agent:
        assert agent.run('Add the prices', additional_args={'unused': [1, 2]}) == {'total': 3.5}
    assert 'so far 1.5' in script.seen
    assert 'not reached' not in str(agent.memory.steps[-1].observations)


def test_an_error_is_told_to_the_model_with_what_was_printed_before(executor: HabilisExecutor) -> None:
    script = Script('print("started")\n{}["key"]', 'price("plum")', 'final_answer = 1', 'final_answer(unused[1])')
    assert agent_of(script, executor, price).run('Fail', additional_args={'unused': [1, 2]}) == 2
    assert 'Execution logs:\nstarted' in script.seen
    assert "KeyError: 'key'" in script.seen
    assert "KeyError: 'plum'" in script.seen
    assert 'it is a tool; choose another name' in script.seen


def test_an_endless_loop_is_stopped_and_the_variables_stay() -> None:
    executor = HabilisExecutor(limits=Limits(seconds=1))
    script = Script('kept = 41', 'kept = 0\nwhile True: pass', 'final_answer(kept + 1)')
    with agent_of(script, executor) as agent:
        assert agent.run('Loop') == 42
    assert 'the time limit of 1 s was reached' in script.seen
    assert 'variables are as before this code' in script.seen


def test_code_cannot_read_a_file_of_the_host_as_it_can_with_the_default(
    executor: HabilisExecutor, tmp_path: Path
) -> None:
    secret = tmp_path / 'secret.txt'
    secret.write_text('host secret')
    codes = (f'import fileinput\nfinal_answer(list(fileinput.input({str(secret)!r}))[0])', 'final_answer("refused")')
    script, theirs = Script(*codes), Script(*codes)
    # The default permits imports by name: any module that opens files opens those of the host.
    assert agent_of(theirs, None, additional_authorized_imports=['fileinput']).run('Read') == 'host secret'
    assert agent_of(script, executor, additional_authorized_imports=['fileinput']).run('Read') == 'refused'
    assert 'FileNotFoundError' in script.seen


def test_a_managed_agent_is_called_from_the_sandbox(executor: HabilisExecutor) -> None:
    helper_executor = HabilisExecutor()
    helper = agent_of(
        Script('final_answer(6 * 7)'), helper_executor, name='helper', description='Multiplies.', max_steps=2
    )
    script = Script('final_answer(helper("6 times 7"))')
    with helper:
        assert '42' in str(agent_of(script, executor, managed_agents=[helper]).run('Ask'))


def test_a_closed_executor_starts_anew(executor: HabilisExecutor) -> None:
    assert executor('x = 1\nx').output == 1
    executor.cleanup()
    assert executor('"x" in globals()').output is False
    assert executor('{1}.union').output.startswith('<built-in method union')
