"""The tasks, and the check of an answer."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals import bare_side, habilis_side
from evals.outcomes import Outcome
from evals.sets import load_set
from evals.tasks import Task, last_number, same
from habilis.models import ScriptedModel
from tests.cases import each_case
from tests.evals.solutions import SOLUTIONS

FORTY, HELD_OUT = load_set('forty'), load_set('held-out')
ALL = (*FORTY, *HELD_OUT)


async def solve(replies: list[str], task: Task) -> Outcome:
    return await habilis_side.solve(ScriptedModel(replies), task, 60)


async def solve_bare(reply: str, task: Task) -> Outcome:
    return await bare_side.solve(ScriptedModel([reply]), task, 60)


def test_there_are_forty_tasks_and_twenty_held_out() -> None:
    assert (len(FORTY), len(HELD_OUT)) == (40, 20)
    assert len({task.id for task in ALL}) == len({task.text for task in ALL}) == 60


@pytest.mark.parametrize('tasks', [FORTY, HELD_OUT], ids=['forty', 'held-out'])
def test_they_are_of_eight_categories(tasks: tuple[Task, ...]) -> None:
    assert Counter(task.category for task in tasks).keys() == {
        'arithmetic',
        'strings',
        'dates',
        'csv',
        'json',
        'sorting',
        'algorithms',
        'tools',
    }


def test_every_task_that_speaks_of_a_tool_or_a_variable_has_it() -> None:
    for task in ALL:
        assert ('Use the tool' in task.text) is bool(task.tools)
        assert ('The variable' in task.text) is bool(task.variables)
        assert all(tool.__name__ in task.text for tool in task.tools)
        assert all(f'`{name}`' in task.text for name in task.variables)


def test_every_expected_answer_is_of_the_kind_that_the_task_asks_for() -> None:
    assert all(type(task.expected) is task.kind for task in ALL)


# The harness, end to end ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize('task', ALL, ids=lambda task: task.id)
async def test_straightforward_code_computes_the_expected_answer(task: Task) -> None:
    outcome = await solve([f'```python\n{SOLUTIONS[task.id]}\nfinal_answer(answer)\n```'], task)
    assert outcome.solved, outcome.answer
    assert (outcome.set, outcome.task, outcome.steps) == (task.set, task.id, 1)
    assert outcome.seconds > 0
    assert outcome.tokens > 0


def test_every_solution_is_of_a_task() -> None:
    assert SOLUTIONS.keys() == {task.id for task in ALL}


def task_named(name: str) -> Task:
    [task] = [task for task in ALL if task.id == name]
    return task


async def test_a_wrong_answer_is_not_solved() -> None:
    outcome = await solve(['```python\nfinal_answer(2480 * 0.17)\n```'], task_named('percent'))
    assert (outcome.solved, outcome.steps) == (False, 1)
    assert outcome.answer.startswith('421.6')


async def test_a_run_that_ends_without_an_answer_is_not_solved() -> None:
    outcome = await solve([f'```python\nprint({number})\n```' for number in range(8)], task_named('gcd'))
    assert (outcome.solved, outcome.answer, outcome.steps) == (False, 'max_steps', 8)


async def test_an_error_of_the_model_is_an_outcome_too() -> None:
    outcome = await solve([], task_named('gcd'))
    assert not outcome.solved
    assert outcome.answer.startswith('ModelError: ')


# Public data ----------------------------------------------------------------------------------------------------------

RIGHT = 'def halve(number):\n    return number / 2\n'
WRONG = 'def halve(number):\n    return number\n'


def test_a_question_of_gsm8k_is_the_whole_task(public_data: Path) -> None:
    _, second = load_set('gsm8k', public_data)
    assert (second.id, second.expected, second.kind) == ('gsm8k-2', 2.4, float)
    assert second.text == 'A loaf of 12 slices is shared by 5. How many slices does each get?'


def test_a_task_of_mbpp_shows_its_tests_and_their_setup(public_data: Path) -> None:
    _, task = load_set('mbpp', public_data)
    assert task.text.startswith('Write a function to halve.\n\n')
    assert task.text.endswith('\n\nHALF = 2\nassert halve(HALF) == 1')
    assert task.tests == ('HALF = 2', 'assert halve(HALF) == 1')


@pytest.mark.parametrize(('code', 'solved'), [(RIGHT, True), (WRONG, False)])
async def test_a_function_is_judged_by_its_tests_whatever_the_agent_says(
    public_data: Path, code: str, solved: bool
) -> None:
    _, task = load_set('mbpp', public_data)
    outcome = await solve([f"```python\n{code}final_answer('all tests pass')\n```"], task)
    assert outcome.solved is solved
    assert outcome.answer == ("'all tests pass'" if solved else 'tests: AssertionError')
    bare = await solve_bare(f'```python\n{code}```', task)
    assert (bare.solved, bare.side) == (solved, 'bare')


# Without an agent -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('task', ALL, ids=lambda task: task.id)
async def test_code_that_prints_the_answer_solves_every_task_without_an_agent(task: Task) -> None:
    outcome = await solve_bare(f'```python\n{SOLUTIONS[task.id]}\nprint(answer)\n```', task)
    assert outcome.solved, outcome.answer
    assert (outcome.side, outcome.steps) == ('bare', 1)


@pytest.mark.parametrize(
    ('reply', 'answer'),
    [
        ('It is 434.', 'no code block'),
        ('```python\n434.0\n```', 'nothing printed'),
        ('```python\nprint(434.0)\n1 / 0\n```', 'ZeroDivisionError: division by zero'),
    ],
)
async def test_a_reply_whose_code_prints_no_answer_is_not_solved(reply: str, answer: str) -> None:
    outcome = await solve_bare(reply, task_named('percent'))
    assert (outcome.solved, outcome.answer) == (False, answer)
    assert outcome.transcript[-1] == ('assistant', reply)


def test_the_prompt_names_what_the_code_may_use() -> None:
    assert bare_side.prompt(task_named('percent')).endswith('\n\nWrite one Python block that prints the answer.')
    assert 'Already defined: sales\n' in bare_side.prompt(task_named('csv-total'))
    assert 'Already defined: def unit_price(product: str) -> float:\n' in bare_side.prompt(task_named('tool-bill'))


def test_a_block_that_was_cut_off_counts() -> None:
    assert bare_side.first_block('Sure:\n```py\nx = 1\n```\n```\ny\n```') == 'x = 1\n'
    assert bare_side.first_block('```\nx = 1') == 'x = 1'
    assert bare_side.first_block('x = 1') is None


# The check ------------------------------------------------------------------------------------------------------------


@each_case(
    ('answer', 'expected'),
    [
        (434, 434.0),
        (434.0, 434),
        (24.349999999999998, 24.35),
        ('434', 434.0),
        (' 434.0\n', 434.0),
        ('Sunday', 'Sunday'),
        (" 'Sunday' ", 'Sunday'),
        (True, True),
        ('true', True),
        ('True', True),
        ("{'a': None}", {'a': None}),
        (10**400, 10**400),
        (('a', 'b'), ['a', 'b']),
        ("['a', 'b']", ['a', 'b']),
        ([99.0, 71, 56], [99, 71, 56]),
        ({'north': 23.0, 'south': 22}, {'south': 22, 'north': 23}),
        ('{"a": 1}', {'a': 1}),
    ],
)
def test_these_are_the_same(answer: object, expected: object) -> None:
    assert same(answer, expected)


@each_case(
    ('answer', 'expected'),
    [
        (None, 434.0),
        (433.99, 434.0),
        ('about 434', 434.0),
        (float('nan'), 434.0),
        (float('inf'), 434.0),
        (10**400, 434.0),
        ('1' * 400, 434.0),
        ('[' * 100_000, 434.0),
        ('', 0),
        (True, 1),
        (1, True),
        ('True', False),
        (0, False),
        ('sunday', 'Sunday'),
        ('It was a Sunday', 'Sunday'),
        (1994, '1994'),
        (['b', 'a'], ['a', 'b']),
        (['a'], ['a', 'b']),
        (['a', 'b', 'c'], ['a', 'b']),
        ({'a', 'b'}, ['a', 'b']),
        ('ab', ['a', 'b']),
        ({'a': 1}, {'a': 1, 'b': 2}),
        ({'a': 1, 'b': 2}, {'a': 1}),
        ({'a': 2}, {'a': 1}),
        ([('a', 1)], {'a': 1}),
        ({}, []),
    ],
)
def test_these_are_not_the_same(answer: object, expected: object) -> None:
    assert not same(answer, expected)


words = st.text(st.characters(codec='utf-8')).filter(lambda text: text.strip().strip('\'"').strip() == text)
plain_data = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=10,
)


@given(value=plain_data)
def test_every_value_is_the_same_as_itself(value: object) -> None:
    assert same(value, value)


@given(answer=plain_data, task=st.sampled_from(ALL))
def test_whatever_the_answer_is_it_is_right_or_wrong(answer: object, task: Task) -> None:
    assert isinstance(task.accepts(answer), bool)


@each_case(
    ('text', 'number'),
    [
        ('Kekai has $10 left.', 10),
        ('from 3 to 1,234.5 euros', 1234.5),
        ('-2', -2),
        ('[1, 2, 30]', 30),
        ('1e3', 1000),
        ('12,5', 5),
        ('none', None),
    ],
)
def test_the_last_number_of_a_sentence_is_the_answer(text: str, number: float | None) -> None:
    assert last_number(text) == number
    assert task_named('gcd').accepts('The gcd is 6')
    assert not task_named('initials').accepts('The initials are AMKL')
