"""A tool of the library is reused if a call of it gives what is asked for."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from habilis.core.errors import ForgeError, ModelUnavailable
from habilis.forge.build.reuse import Finder, example_calls, is_same
from habilis.forge.contract import Candidate
from habilis.forge.library.library import Library
from habilis.models import Message, ScriptedModel
from tests.cases import each_case

CODE = 'def {name}(celsius: float) -> float:\n    """Convert degrees: {name}."""\n    return celsius * {factor}\n'
TESTS = 'from tool import {name}\n\n\ndef test_one() -> None:\n    assert {name}(1) == {factor}\n'


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """Two tools that are similar."""
    made = Library(tmp_path / 'library')
    for name, factor in (('double_degrees', 2), ('triple_degrees', 3)):
        code, tests = (text.format(name=name, factor=factor) for text in (CODE, TESTS))
        made.add(Candidate(name=name, code=code, tests=tests), tests=1)
    return made


class Asked:
    """A model that calls the function it is shown, and computes the answer by itself."""

    def __init__(self, own: str = 'answer = 12', call: str = '```python\n{name}(4)\n```', confirm: str = 'YES') -> None:
        self._own = own
        self._call = call
        self._confirm = confirm
        self.prompts: list[str] = []
        self.model = ScriptedModel(self._reply)

    def _reply(self, messages: Sequence[Message]) -> str:
        said = messages[-1].text
        self.prompts.append(said)
        if 'This was computed' in said:
            return self._confirm
        if 'Write Python code that computes the answer' in said:
            assert 'degrees(' not in said, 'it knows nothing of the tools'
            return f'```python\n{self._own}\n```'
        if 'Answer it with one call' in said:
            name = next(name for name in ('double_degrees', 'triple_degrees') if f'def {name}' in said)
            return self._call.format(name=name)
        return 'It is 12.'


async def test_the_tool_that_agrees_with_own_code_is_reused(library: Library) -> None:
    asked = Asked()
    finder = Finder(library, asked.model)
    assert await finder.find('Convert 4 degrees', []) == 'triple_degrees'
    assert await finder.answer('Convert 4 degrees', 'triple_degrees') == 'It is 12.'
    assert 'triple_degrees(1) == 3' in asked.prompts[-2], 'examples show how it is called'


async def test_a_result_is_kept_when_the_model_cannot_word_it(library: Library) -> None:
    model = ScriptedModel(['```python\ntriple_degrees(4)\n```', ModelUnavailable('too many requests')])
    assert await Finder(library, model).answer('Convert 4 degrees', 'triple_degrees') == '12'


@pytest.mark.parametrize(
    'asked', [Asked('answer = 99'), Asked('1 / 0'), Asked('print(12)'), Asked('Sorry.'), Asked(confirm='NO')]
)
async def test_without_agreement_no_tool_is_reused(library: Library, asked: Asked) -> None:
    assert await Finder(library, asked.model).find('Convert 4 degrees', []) == ''


@each_case(
    ('one', 'other', 'same'),
    [
        (37.78, 340 / 9, True),
        (45, 45.0, True),
        (1, True, False),
        ('Monday', ' monday', True),
        ((1, 2.0), [1, 2], True),
        ([1], [1, 2], False),
        ({'a': 1}, {'a': 1}, True),
        (45, '45', False),
        (None, 0, False),
    ],
)
def test_results_that_say_the_same(one: object, other: object, same: bool) -> None:
    assert is_same(one, other) is is_same(other, one) is same


@pytest.mark.parametrize('call', ['NONE', '```python\n{name}(open("x"))\n```', '```python\n{name}("a", "b")\n```'])
async def test_a_tool_that_cannot_be_called_is_not_reused(library: Library, call: str) -> None:
    finder = Finder(library, Asked(call=call).model)
    assert await finder.find('Convert 4 degrees', []) == ''
    if call == 'NONE':
        with pytest.raises(ForgeError, match='the model wrote no call of double_degrees'):
            await finder.answer('Convert 4 degrees', 'double_degrees')


async def test_a_request_without_values_is_decided_by_descriptions(library: Library) -> None:
    finder = Finder(library, ScriptedModel(['double_degrees', 'NONE']))
    assert await finder.find('Convert degrees', []) == 'double_degrees'
    assert await finder.find('Convert degrees', []) == ''


@pytest.mark.parametrize(('said', 'found'), [('YES', 'double_degrees'), ('NO', '')])
async def test_a_small_model_is_asked_again_about_the_tool_it_chose(library: Library, said: str, found: str) -> None:
    model = ScriptedModel(['double_degrees', said], small=True)
    assert await Finder(library, model).find('Convert degrees', []) == found


async def test_examples_decide_without_a_model(library: Library) -> None:
    finder = Finder(library, ScriptedModel([]))
    assert await finder.find('Anything', ['double_degrees(3) == 6']) == 'double_degrees'
    assert await finder.find('Anything', ['double_degrees(3) == 7']) == ''


async def test_examples_are_tried_on_similar_tools_under_the_names_of_these(library: Library) -> None:
    asked = ScriptedModel(['triple_degrees'])
    found = await Finder(library, asked).find('Convert degrees', ['to_triple(3) == 9', 'to_triple(2) == 6'])
    assert found == 'triple_degrees'
    assert 'double_degrees' not in asked.requests[0].messages[-1].text
    assert await Finder(library, ScriptedModel([])).find('Convert degrees', ['to_triple(3) == 8']) == ''


def test_example_calls_are_those_of_the_tests() -> None:
    tests = 'def test_a() -> None:\n    assert x\n    assert f(1) == 2\n    assert g(f(2)) == 3\n    assert f(3) == 4\n'
    assert example_calls(Candidate(name='f', code='', tests=tests)) == ['f(1) == 2', 'f(3) == 4']
    assert example_calls(Candidate(name='f', code='', tests='no Python (')) == []
