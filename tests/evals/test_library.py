"""`python -m evals.library`: both sides answer, reuse is counted, and a second run continues. The model is scripted."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from evals import library
from evals.library import RequestOutcome, duplicates, evaluate, load_families, pairs, parse_arguments
from evals.outcomes import read_as
from habilis.forge.library.library import Library
from habilis.models import Message, ScriptedModel
from tests.forge.samples import double

MAKE = "```python\nprint(make_tool('Postage of a parcel.', ['postage(480) == 2.3']))\n```"
CALL = '```python\nfinal_answer(postage(480))\n```'
CODE = 'def postage(grams: int) -> float:\n    """Price of a parcel."""\n    return grams / 100 - 2.5\n'
TESTS = ''.join(f'def test_{n}():\n    assert postage({100 * n}) == {n - 2.5}\n' for n in (3, 4, 5))


def reply(messages: Sequence[Message]) -> str:
    """Has a tool built for the first request, and calls it for every one."""
    asked = messages[-1].text
    if 'Write tests' in asked:
        return f'```python\n{TESTS}```'
    if 'Design the function' in asked or 'Implement this function' in asked:
        return f'```python\n{CODE}```'
    if 'def make_tool' in messages[0].text and 'def postage' not in '\n'.join(one.text for one in messages):
        return MAKE
    return CALL if 'def make_tool' in messages[0].text else '```python\nfinal_answer(1.0)\n```'


PROGRAM = """```python
import math
grams = {grams}
price = 1.10 if grams <= 50 else 2.30 if grams <= 500 else 4.90
extra = max(0, math.ceil((grams - 2000) / 500)) * 0.80
final_answer(round(price + extra, 2))
```"""
CALLS = {
    'three parcels': '{0}(40) + {0}(900) + {0}(2600)',
    '4100 g': '{0}(4100)',
    'price difference': 'round({0}(3001) - {0}(51), 2)',
}


def strong(messages: Sequence[Message]) -> str:
    """Writes a program, unless there is a tool that does what it would write."""
    told = '\n'.join(one.text for one in messages)
    if kept := re.search(r'def (letter_office\w*)\(', told):
        call = next(code for words, code in CALLS.items() if words in told)
        return f'```python\nfinal_answer({call.format(kept[1])})\n```'
    return PROGRAM.format(grams=max(map(int, re.findall(r'(\d+) g', told.split('0.80.')[-1]))))


async def test_a_run_that_was_right_is_kept_and_the_next_requests_call_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(_: str) -> ScriptedModel:
        return ScriptedModel(strong)

    monkeypatch.setattr(library, 'load_model', load)
    said: list[str] = []
    arguments = ['--limit', '1', '--side', 'no library', '--side', 'kept runs']
    await evaluate(parse_arguments(arguments), tmp_path, said.append)
    outcomes = read_as(RequestOutcome, tmp_path / 'results.jsonl')
    without, kept = ([one for one in outcomes if one.side == side] for side in ('no library', 'kept runs'))
    assert [one.right for one in without] == [True, False, True, False]
    assert [one.right for one in kept] == [True] * 4
    [tool] = kept[0].built
    assert [[*one.reused] for one in kept] == [[], [tool], [tool], [tool]]
    assert [one.only_called for one in kept] == [False, True, True, True]
    assert kept[2].output_tokens < without[2].output_tokens
    assert 'right with kept runs only: postage-2, postage-4\n' in said[-3]


def test_there_are_twenty_families_of_requests_with_one_answer_each() -> None:
    families = load_families()
    assert len(families) == 20
    for tasks in families.values():
        assert 3 <= len(tasks) <= 4
        assert len({task.text for task in tasks}) == len(tasks)
        for task in tasks:
            assert isinstance(task.expected, task.kind)
            assert task.accepts(task.expected)
            assert not task.accepts('something else')


async def test_tools_are_built_and_reused_and_a_second_run_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(_: str) -> ScriptedModel:
        return ScriptedModel(reply)

    monkeypatch.setattr(library, 'load_model', load)
    said: list[str] = []
    given = parse_arguments(['--limit', '1', '--side', 'no library', '--side', 'library'])
    await evaluate(given, tmp_path, said.append)
    outcomes = read_as(RequestOutcome, tmp_path / 'results.jsonl')
    assert [one.side for one in outcomes] == ['no library', 'library'] * 4
    first, *later = [one for one in outcomes if one.side == 'library']
    assert (first.right, [*first.built], [*first.reused]) == (True, ['postage'], [])
    assert [([*one.built], [*one.reused]) for one in later] == [([], ['postage'])] * 3
    assert all(one.tokens > 0 for one in outcomes)
    assert 'right with library only: postage-1\n' in said[-3]
    assert said[-3].splitlines()[3].split()[-2] == '3/3'
    assert said[-1] == 'duplicates: 0'

    said.clear()
    await evaluate(given, tmp_path, said.append)
    assert len(said) == 3, 'nothing is answered again'


def test_tools_that_do_the_same_are_duplicates(tmp_path: Path) -> None:
    tools = Library(tmp_path)
    tools.add(double('first'))
    tools.add(double('second'))
    assert duplicates(tools) == ['second: its code is that of first']


def test_only_pairs_are_compared() -> None:
    outcome = RequestOutcome(
        family='a', request=1, side='library', model='m', right=True, answer='', tokens=1, seconds=1.0
    )
    assert pairs([outcome], 'library') == 'right with library only: none\nright without only: none'
