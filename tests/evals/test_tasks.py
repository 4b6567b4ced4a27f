"""The tasks, and the check of an answer."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.habilis_side import solve
from evals.tasks import HELD_OUT, TASKS, Task, same
from habilis.models import ScriptedModel
from tests.evals.solutions import SOLUTIONS

ALL = (*TASKS, *HELD_OUT)


def test_there_are_forty_tasks_and_twenty_held_out() -> None:
    assert (len(TASKS), len(HELD_OUT)) == (40, 20)
    assert len({task.id for task in ALL}) == len({task.text for task in ALL}) == 60


@pytest.mark.parametrize('tasks', [TASKS, HELD_OUT], ids=['tasks', 'held out'])
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
    model = ScriptedModel([f'```python\n{SOLUTIONS[task.id]}\nfinal_answer(answer)\n```'])
    outcome = await solve(model, task)
    assert outcome.solved, outcome.answer
    assert (outcome.task, outcome.steps) == (task.id, 1)
    assert outcome.seconds > 0
    assert outcome.tokens > 0


def test_every_solution_is_of_a_task() -> None:
    assert SOLUTIONS.keys() == {task.id for task in ALL}


def task_named(name: str) -> Task:
    [task] = [task for task in TASKS if task.id == name]
    return task


async def test_a_wrong_answer_solves_nothing() -> None:
    outcome = await solve(ScriptedModel(['```python\nfinal_answer(2480 * 0.17)\n```']), task_named('percent'))
    assert (outcome.solved, outcome.steps) == (False, 1)
    assert outcome.answer.startswith('421.6')


async def test_a_run_that_ends_without_an_answer_solves_nothing() -> None:
    model = ScriptedModel([f'```python\nprint({number})\n```' for number in range(8)])
    outcome = await solve(model, task_named('gcd'))
    assert (outcome.solved, outcome.answer, outcome.steps) == (False, 'max_steps', 8)


async def test_an_error_of_the_model_is_an_outcome_too() -> None:
    outcome = await solve(ScriptedModel([]), task_named('gcd'))
    assert not outcome.solved
    assert outcome.answer.startswith('ModelError: ')


# The check ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
    assert isinstance(task.solved_by(answer), bool)
