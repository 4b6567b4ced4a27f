"""What the model is told, word for word: `prompts/` beside this file holds it, so that a change shows in review.

After a change that is meant: `UPDATE_SNAPSHOTS=1 pytest tests/agent/context/test_prompt.py` writes the files anew.
"""

import os
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import pytest

from habilis.agent.context.observation import describe_variable
from habilis.agent.context.output import OutputType
from habilis.agent.context.prompt import (
    PYTHON,
    PromptParts,
    artifacts_message,
    preview,
    prompt_file,
    step_tools_message,
    system_prompt,
    task_message,
)
from habilis.agent.context.truncation import Bounds
from habilis.agent.policies import History
from habilis.agent.policies.small import SmallPolicy
from habilis.core.folders import cache_folder
from habilis.models.contract import Function
from habilis.models.tokens import count_tokens
from habilis.sandbox.contract import Variable
from habilis.tools import Toolbox, tool
from tests.agent.context.sent_prompts import sent_prompts
from tests.cases import each_case
from tests.place import Place

FOLDER = Path(__file__).parent / 'prompts'
TOKENS = 'TOKENS'
"""The snapshot that has the number of tokens of all others."""


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A page that was found."""

    title: str
    score: float


@tool
async def search(query: str, limit: int = 5) -> list[Hit]:
    """Search the web."""
    return [Hit(title=query, score=1.0)] * limit


@tool
def price_of(item: str) -> float | None:
    """The price in euros; None if there is none.

    Args:
        item: its name in the catalogue.
    """
    return {'tea': 2.5}.get(item)


TOOLS = Toolbox([search, price_of]).stubs()
ASK = Function(
    name='ask_user',
    description='Ask the user a question.',
    parameters={'type': 'object', 'properties': {'question': {'type': 'string'}}, 'required': ['question']},
)
FENCE = PromptParts(functions=False)
CALL = PromptParts(functions=True)
SMALL = PromptParts(functions=False, text=SmallPolicy().text)
WITH_TOOLS = replace(FENCE, stubs=TOOLS, output=OutputType(Hit).name, instructions='Answer in English.\n')
SKILLS = {'pdf': 'Reads and fills in PDF files.', 'brand-voice': 'How our texts sound. Use it before you write one.'}
TEA = {'notes.md': 'Tea is green.', 'long.txt': '\n'.join(f'line {number}' for number in range(100))}

SNAPSHOTS = {
    'fence': system_prompt(FENCE),
    'fence_tools_output': system_prompt(WITH_TOOLS),
    'fence_without_stop': system_prompt(WITH_TOOLS.without_stop()),
    'fence_model_tools': system_prompt(replace(FENCE, model_tools=[ASK])),
    'fence_skills': system_prompt(replace(WITH_TOOLS, skills=SKILLS, has_script_runner=True)),
    'call': system_prompt(CALL),
    'call_tools': system_prompt(replace(CALL, stubs=TOOLS, model_tools=[ASK])),
    'call_without_stop': system_prompt(CALL.without_stop()),
    'fence_small': system_prompt(replace(SMALL, imports=tuple(SmallPolicy().imports()))),
    'call_small': system_prompt(replace(SMALL, functions=True)),
    'fence_small_talk': system_prompt(replace(SMALL, talk=True)),
    'fence_talk': system_prompt(replace(FENCE, stubs=TOOLS, talk=True)),
    'call_talk': system_prompt(replace(CALL, talk=True)),
    'no_python': system_prompt(replace(CALL, python=False, instructions='Answer in English.')),
    'no_python_model_tools': system_prompt(replace(FENCE, python=False, model_tools=[ASK])),
    'task': task_message(
        ' Add up the sales.\n',
        variables=[
            describe_variable(Variable(name='sales', type='list', size='12 items')),
            describe_variable(Variable(name='year', type='int', size='')),
        ],
    ),
    'task_small': SmallPolicy().task_note(History(tools={'price': '(item: str) -> float'}), can_stop=True),
    'task_small_without_stop': SmallPolicy().task_note(History(), can_stop=False),
    'artifacts': artifacts_message(TEA, Bounds(tokens=2000, lines=10)),
    'artifacts_no_python': artifacts_message(TEA, Bounds(tokens=2000, lines=10), code=False),
    'step_tools': step_tools_message(TOOLS, [ASK]),
}


@pytest.fixture
async def snapshots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """All prompts by name, and a table of what each costs."""
    cache = cache_folder()
    place = Place(tmp_path, monkeypatch)
    monkeypatch.setenv('HABILIS_CACHE', str(cache))  # building the interpreter takes long
    found = {**SNAPSHOTS, **await sent_prompts(place.folder)}
    lines = [f'{count_tokens(text):>6} {name}' for name, text in sorted(found.items())]
    return {**found, TOKENS: '\n'.join([f'{"tokens":>6} prompt', *lines])}


async def test_prompts_equal_their_snapshots(snapshots: dict[str, str]) -> None:
    if os.environ.get('UPDATE_SNAPSHOTS') == '1':
        for path in FOLDER.glob('*.txt'):
            path.unlink()
        for name, text in snapshots.items():
            (FOLDER / f'{name}.txt').write_text(text + '\n', encoding='utf-8')
    told = {path.stem: path.read_text(encoding='utf-8') for path in FOLDER.glob('*.txt')}
    sent = {name: text + '\n' for name, text in snapshots.items()}
    changed = sorted(name for name in {*told, *sent} - {TOKENS} if told.get(name) != sent.get(name))
    assert not changed, f'{", ".join(changed)} changed; if that is meant, run with UPDATE_SNAPSHOTS=1'
    assert told == sent


def test_every_prompt_file_can_be_read_and_is_not_empty() -> None:
    names = [
        path.name for path in files('habilis.agent.context').joinpath('prompts').iterdir() if path.name.endswith('.md')
    ]
    assert 'system.md' in names
    for name in names:
        assert prompt_file(name.removesuffix('.md'))


def test_nothing_is_left_to_be_filled_in() -> None:
    for text in SNAPSHOTS.values():
        for name in ('protocol', 'example', 'packages', 'sections'):
            assert f'{{{name}}}' not in text


def test_adding_a_tool_adds_its_name_parameters_types_return_and_description() -> None:
    @tool
    def convert(amount: float, to: str = 'EUR') -> list[str]:
        """Convert an amount of money."""
        return [f'{amount} {to}']

    without = system_prompt(replace(FENCE, stubs=TOOLS))
    added = system_prompt(replace(FENCE, stubs=Toolbox([search, price_of, convert]).stubs()))
    assert 'convert' not in without
    assert "def convert(amount: float, to: str = 'EUR') -> list[str]" in added
    assert 'Convert an amount of money.' in added


def test_without_stop_nothing_is_said_of_final_answer() -> None:
    for parts in (WITH_TOOLS, replace(CALL, stubs=TOOLS, output='int')):
        assert 'final_answer' in system_prompt(parts)
        assert 'final_answer' not in system_prompt(parts.without_stop())


def test_without_python_there_is_no_word_of_it_and_no_tool_for_it() -> None:
    text = system_prompt(replace(FENCE, python=False, stubs=TOOLS))
    assert 'Python' not in text
    assert 'price_of' not in text


def test_the_prompt_of_a_model_that_calls_functions_does_not_list_them() -> None:
    assert 'ask_user' in system_prompt(replace(FENCE, model_tools=[ASK]))
    assert 'ask_user' not in system_prompt(replace(CALL, model_tools=[ASK]))


def test_the_same_parts_give_the_same_bytes() -> None:
    assert system_prompt(replace(WITH_TOOLS)) == system_prompt(WITH_TOOLS)


@pytest.mark.parametrize(
    'text', ['Use {braces} and {sections}.', '{packages}{example}{protocol}', '{0} {} {{x}}', '\\1']
)
def test_instructions_are_never_taken_for_a_template(text: str) -> None:
    assert text in system_prompt(replace(FENCE, instructions=text))
    assert text in system_prompt(replace(FENCE, stubs=f'def f(): # {text}'))


def test_the_prompt_is_short_enough_for_a_small_model() -> None:
    assert len(system_prompt(FENCE)) < 2_000


def test_the_function_that_carries_code_takes_code_and_nothing_else() -> None:
    assert PYTHON.parameters['required'] == ['code']
    assert PYTHON.parameters['additionalProperties'] is False


def test_a_task_alone_is_the_users_words() -> None:
    assert task_message('  Do it.\n') == 'Do it.'


def test_artifacts_are_given_by_name_and_the_long_ones_in_part() -> None:
    text = artifacts_message(TEA, Bounds(tokens=2000, lines=10))
    assert "<document name='notes.md'>\nTea is green.\n</document>" in text
    assert "the whole is in artifacts['long.txt'] …]" in text
    assert 'line 0\n' in text
    assert 'line 99\n' in text
    assert 'line 50' not in text


@each_case(
    ('value', 'shown'),
    [
        (
            'a,b\n1,2\n',
            "the first is 'a,b'. Read it with: import csv, io; rows = list(csv.DictReader(io.StringIO(x)))",
        ),
        (
            'a\tb\n1\t2\n',
            "Read it with: import csv, io; rows = list(csv.DictReader(io.StringIO(x), delimiter='\\t'))",
        ),
        ('[1,\n2]', "the first is '[1,'. Read it with: import json; data = json.loads(x)"),
        ('one, two\nthree', "the first is 'one, two'. Read it with: lines = x.splitlines()"),
        ([{'a': 1}, {'a': 2}], "each such as {'a': 1}"),
        (list(range(100)), f'{str(list(range(100)))[:80]}…'),
    ],
)
def test_a_long_variable_is_previewed(value: object, shown: str) -> None:
    assert preview('x', value).endswith(shown)
