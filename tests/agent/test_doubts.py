"""Answers that look made up are doubted once, and then taken."""

from collections.abc import Sequence

import pytest

from habilis.agent.doubts import Doubts
from habilis.tools import CallRecord


def asked(*things: str, tool: str = 'price') -> list[CallRecord]:
    return [CallRecord(id=number, name=tool, arguments={'item': item}, ok=True) for number, item in enumerate(things)]


def about(
    task: str,
    value: object,
    *,
    code: str = 'final_answer(x)',
    small: bool = True,
    calls: Sequence[CallRecord] = (),
) -> str | None:
    tools = {'price': '(item: str) -> float', 'stock': '(item: str) -> int'}
    doubt = Doubts(task, small=small).about_answer(code, value, seen=task, tools=tools, calls=calls)
    return None if doubt is None else doubt.text


@pytest.mark.parametrize('value', [0, '', [], {}, 0.0])
def test_nothing_is_an_unlikely_answer_of_a_small_model(value: object) -> None:
    assert repr(value) in (about('How many?', value) or '')
    assert about('How many?', value, small=False) is None


@pytest.mark.parametrize('value', [False, True, 1, 'x', [0], 0.5])
def test_other_answers_are_taken(value: object) -> None:
    assert about('How many?', value) is None


def test_too_many_decimals_are_told() -> None:
    assert 'round(..., 2)' in (about('How much, rounded to 2 decimals?', 1.23456) or '')
    assert about('How much, rounded to 2 decimals?', 1.23) is None
    assert about('Round the result to three decimals.', 1.23456) is None  # only digits are understood


def test_an_order_that_was_asked_for_is_looked_at() -> None:
    assert 'sorted' in (about('Answer with the alphabetical list.', ['b', 'a']) or '')
    assert about('Answer with the alphabetical list.', ['a', 'B', 'c']) is None
    assert about('By length, and alphabetically within it.', ['b', 'a']) is None


def test_a_tool_that_the_task_names_has_to_be_called() -> None:
    assert 'price(item: str) -> float' in (about('Use the tool price.', 3) or '')
    assert about('Use the tool price.', 3, calls=asked('tea')) is None
    assert about('Use the tool prices.', 3) is None


def test_all_that_the_task_lists_has_to_be_asked_about() -> None:
    task = 'How long is the tour Thun, Bern, Basel, Chur (in this order)?'
    told = about(task, 30, calls=asked('Thun', 'Bern')) or ''
    assert 'lists Thun, Bern, Basel, Chur, and your code did not ask about Basel, Chur' in told
    assert about(task, 30, calls=asked('Thun', 'Bern'), small=False) is None
    assert about(task, 335, calls=asked('Thun', 'Bern', 'Basel', 'Chur')) is None
    assert about('What do tea, milk and cake cost?', 3, calls=asked('tea', 'milk')) is not None


@pytest.mark.parametrize(
    ('task', 'things'),
    [
        ('In Rome, what does tea cost?', ('Rome',)),
        ('In Rome, Bern, and how it is in Paris, compare the prices.', ('Rome', 'Bern', 'Paris')),
        ('The columns are date, region, units and price. What does tea cost?', ('tea',)),
        ('Tea or coffee, which one?', ('tea', 'coffee')),
        (f'{"a" * 100_000}, {"b, " * 30_000}', ('x', 'y')),
    ],
)
def test_a_comma_does_not_make_a_list(task: str, things: tuple[str, ...]) -> None:
    assert about(task, 3, calls=asked(*things)) is None


def test_things_that_were_left_out_are_asked_for_three_times() -> None:
    doubts = Doubts('How long is the tour Thun, Bern, Basel?', small=True)
    found = [
        doubts.about_answer('final_answer(x)', 3, seen='', tools={}, calls=asked('Thun', 'Bern')) for _ in range(4)
    ]
    assert [doubt is not None for doubt in found] == [True, True, True, False]


def test_the_highest_is_not_found_by_asking_once() -> None:
    task = 'At which hour is it warmest?'
    assert 'which is the warmest' in (about(task, 20, calls=asked('12')) or '')
    assert 'called only once' in (about(task, 20, calls=asked('12', '12')) or '')
    assert about(task, 14, calls=asked('12', '13')) is None
    assert about(task, 14) is None
    assert about('Take at most 3: what do they cost on request?', 14, calls=asked('tea')) is None


def test_the_code_that_mends_a_detail_is_given() -> None:
    code = 'names = [1]\nfinal_answer(names)'
    assert 'final_answer(sorted(names))\n```' in (about('In alphabetical order?', ['b', 'a'], code=code) or '')
    assert 'final_answer(round(x, 2))\n```' in (about('Rounded to 2 decimals?', 1.234) or '')
    assert '```' not in (about('Rounded to 2 decimals?', 1.234, code='final_answer(1.234 * 1)') or '```')


def test_a_number_that_nobody_has_seen_is_doubted_whoever_writes_it() -> None:
    code = 'x = sum([1, 2])\nfinal_answer(7)'
    assert '7' in (about('Add.', 7, code=code, small=False) or '')
    assert about('Add 3 and 4 to get 7.', 7, code=code) is None


TABLE = 'day,place\n2024-02-02,north\n2024-02-14,south\n2024-03-01,north\n'


@pytest.mark.parametrize(
    ('condition', 'doubted'),
    [
        ("row['day'] == '2024-02-02'", True),
        ("row['day'].startswith('2024-02')", False),
        ("row['place'] == 'south'", False),  # the task names it
        ("row['place'] == 'west'", False),  # not in the data
        ("row['place'] != '2024-02-02'", False),
    ],
)
def test_one_row_that_stands_for_all_is_doubted(condition: str, *, doubted: bool) -> None:
    code = f'n = sum(1 for row in rows if {condition})\nfinal_answer(n)'
    task = f'Here is a table:\n{TABLE}\nHow many days of February in the South are there?'
    assert ('left out' in (about(task, 1, code=code) or '')) is doubted
    doubts = Doubts('How many days of February in the south?', small=True, texts=[TABLE])
    assert (doubts.about_answer(code, 1, seen='', tools={}, calls=()) is not None) is doubted


def test_one_row_that_stands_for_all_is_doubted_again_and_not_shown_to_be_copied() -> None:
    doubts = Doubts('How many days of February?', small=True, texts=[TABLE])
    code = "final_answer(sum(row['day'] == '2024-02-02' for row in rows))"
    first, second, third = (doubts.about_answer(code, 1, seen='', tools={}, calls=()) for _ in range(3))
    assert first is not None
    assert (first, third) == (second, None)
    assert first.detail
    assert "```python\nfinal_answer(sum((row['day'].startswith('2024-02') for row in rows)))\n```" in first.text
    assert '-02-02' not in first.text
    other = code.replace("row['day'] == '2024-02-02'", "row['place'] == 'north'")
    doubt = Doubts('How many days of February?', small=True, texts=[TABLE]).about_answer(
        other, 1, seen='', tools={}, calls=()
    )
    assert doubt is not None
    assert (doubt.detail, "condition on row['place']" in doubt.text, 'north' in doubt.text) == (False, True, False)


@pytest.mark.parametrize(
    ('task', 'value', 'doubted'),
    [
        ('The initials, without spaces or dots.', 'A. K.', True),
        ('Use no spaces.', 'a b', True),
        ('Without any spaces.', ' ab\n', False),
        ('Without spaces.', ['a b'], False),
        ('There is no space for more.', 'a b', False),
        ('A table without spaces:\nname,town\nAnn,Bern\nBob,Basel\n\nWho lives in Bern?', 'Ann M', True),
        ('Who?\nname,town\nAnn,no spaces\nBob,Basel\n', 'Ann M', False),
    ],
)
def test_spaces_that_the_task_does_not_want_are_doubted(task: str, value: object, *, doubted: bool) -> None:
    assert ('has spaces' in (about(task, value) or '')) is doubted
    assert about(task, value, small=False) is None


@pytest.mark.parametrize(
    ('task', 'code', 'doubted'),
    [
        ('How many groups of two or more are there?', 'final_answer(len(pairs))', True),
        ('How many groups of two or more are there?', 'final_answer(sum(len(g) > 1 for g in groups))', False),
        ('How many groups of two or more are there?', 'final_answer(sum(len(g) >= 2 for g in groups))', False),
        ('How many orders of at least 100 euros?', 'final_answer(len(orders))', True),
        (
            'How many orders of at least 100 euros?',
            'least = 100\nfinal_answer(len([o for o in x if o >= least]))',
            False,
        ),
        ('How many have at least 0 euros?', 'final_answer(len(x))', False),
        ('At least once or more.', 'final_answer(len(x))', False),
        (f'At least {"9" * 5000} of them.', 'final_answer(len(x))', False),
        ('How many?\na,b\n1,two or more\n2,b\n', 'final_answer(len(x))', False),  # in the data
    ],
)
def test_a_bound_that_the_code_does_not_look_at_is_doubted(task: str, code: str, *, doubted: bool) -> None:
    assert ('compares with' in (about(task, 4, code=code) or '')) is doubted
    assert about(task, 4, code=code, small=False) is None


@pytest.mark.parametrize(
    ('code', 'doubted'),
    [
        ('final_answer(tea + 2 * coffee + 1 * cake)', True),
        ('final_answer(3 * tea + 2 * coffee + cake)', False),
        ("order = {'tea': 3, 'coffee': 2, 'cake': 1}\nfinal_answer(sum(order.values()))", False),
        ('final_answer(total)', False),  # perhaps it was counted before
        ('final_answer(tea + coffee + cake)', True),
    ],
)
def test_a_quantity_that_was_forgotten_is_doubted(code: str, *, doubted: bool) -> None:
    task = 'What do 3 teas, 2 coffees and 1 cake cost?'
    assert ('there is no 3' in (about(task, 4.5, code=code) or '')) is doubted
    assert about('A train takes 2 hours and 15 minutes.', 4.5, code='final_answer(337.5 / 2.25)') is None


LOOP = "for row in rows:\n    if row['day'] > 'x':\n        result = row['units']\n        {end}\nfinal_answer(result)"


@pytest.mark.parametrize(
    ('task', 'code', 'doubted'),
    [
        ('How many units were sold in 2024?', LOOP.format(end='break'), True),
        ('What is the first number of units in 2024?', LOOP.format(end='break'), False),
        ('How many units were sold in 2024?', LOOP.format(end='continue'), False),
        ('How many?', 'n = 0\nwhile True:\n    n += 1\n    if n > 5: break\nfinal_answer(n)', False),
        ('How many?', 'for n in range(9):\n    total += n\n    if total > 5: break\nfinal_answer(total)', False),
    ],
)
def test_the_first_that_fits_is_not_all_of_them(task: str, code: str, *, doubted: bool) -> None:
    assert ('first row that fits' in (about(task, 4, code=code) or '')) is doubted


def test_who_insists_is_believed() -> None:
    doubts = Doubts('How many?', small=True)
    assert doubts.about_answer('final_answer(x)', 0, seen='', tools={}, calls=()) is not None
    assert doubts.about_answer('final_answer(x)', 0, seen='', tools={}, calls=()) is None


@pytest.mark.parametrize(
    ('task', 'value', 'detail'),
    [('Rounded to 2 decimals?', 1.234, True), ('In alphabetical order?', ['b', 'a'], True), ('How many?', 0, False)],
)
def test_a_detail_is_told_from_a_wrong_way(task: str, value: object, *, detail: bool) -> None:
    doubt = Doubts(task, small=True).about_answer('final_answer(x)', value, seen='', tools={}, calls=())
    assert doubt is not None
    assert doubt.detail is detail


def test_a_number_in_words_without_any_code_is_doubted_once() -> None:
    doubts = Doubts('6 * 7?', small=True)
    assert doubts.about_words('Hello!', worked=False) is None
    assert doubts.about_words('It is 42.', worked=True) is None
    assert doubts.about_words('It is 42.', worked=False) is not None
    assert doubts.about_words('It is 42.', worked=False) is None


def test_an_answer_inside_a_loop_is_only_the_first_thing_it_found() -> None:
    code = 'for n in [1, 2]:\n    if n:\n        final_answer(n)'
    assert 'after the loop' in (about('How many?', 1, code=code) or '')
    assert about('How many?', 1, code=code, small=False) is None
    assert about('How many?', 3, code='t = 0\nfor n in [1, 2]:\n    t += n\nfinal_answer(t)') is None


def test_data_of_the_task_whose_words_were_run_together_is_doubted() -> None:
    task = 'Make the initials of "Ada Maria King Lovelace".'
    assert "'AdaMariaKingLovelace'" in (about(task, 'A', code="x = 'AdaMariaKingLovelace'\nfinal_answer(x[0])") or '')
    assert about(task, 'A', code="x = 'Ada Maria King Lovelace'\nfinal_answer(x[0])") is None
    listed = 'Count the words listen, silent, enlist.'
    assert about(listed, 3, code="x = 'listen silent enlist'.split()\nfinal_answer(len(x))") is None
