"""Tests as models write them."""

from habilis.forge.build.written_tests import MAX_ASSERTS, has_enough_tests, outlying_tests, read_tests
from habilis.forge.contract import TestOutcome, Verification
from tests.cases import each_case


def test_asserts_of_one_function_become_tests_of_their_own() -> None:
    lines = '    assert f(1) == 2\n    assert f(2) == 4\n    assert f(1) == 2\n'
    reply = f'```python\ndef test_it() -> None:\n    """All."""\n{lines}```'
    assert read_tests(reply, 'f') == {
        'test_it_1': 'def test_it_1() -> None:\n    assert f(1) == 2',
        'test_it_2': 'def test_it_2() -> None:\n    assert f(2) == 4',
    }


def test_a_test_with_other_statements_stays_whole() -> None:
    source = 'def test_it():\n    value = f(1)\n    assert value == 2\n    assert value != 3'
    assert read_tests(f'```python\n{source}\n```', 'f') == {'test_it': source}


def test_the_tests_of_a_truncated_reply_are_kept_up_to_its_last_whole_line() -> None:
    reply = '```python\ndef test_it():\n    assert f(1) == 2\n    assert f(2) == 4\n    assert f(3'
    assert list(read_tests(reply, 'f').values()) == [
        'def test_it_1() -> None:\n    assert f(1) == 2',
        'def test_it_2() -> None:\n    assert f(2) == 4',
    ]


def test_names_of_the_users_examples_and_tests_of_something_else_are_left_out() -> None:
    examples = 'def test_example_1():\n    assert f(1) == 9\n'
    others = 'def test_g():\n    assert g(1) == 1\n\ndef check():\n    f(1)\n'
    assert read_tests(f'```python\n{examples}\n{others}```', 'f') == {}


def test_a_reply_is_complete_with_a_closed_block_or_many_asserts() -> None:
    line = '    assert f(1) == 2\n'
    assert not has_enough_tests('```python\ndef test_it():\n' + line * MAX_ASSERTS)
    assert has_enough_tests('```python\ndef test_it():\n' + line * (MAX_ASSERTS + 1))
    assert has_enough_tests('```python\ndef test_it():\n' + line + '```\n')


def ran(*errors: str, **named: str) -> Verification:
    """An implementation that has run tests with these errors; an empty one for a test that passed."""
    tests = {**{f'test_{number}': error for number, error in enumerate(errors)}, **named}
    return Verification(tests=tuple(TestOutcome(name=name, error=error) for name, error in tests.items()))


WRONG = ran('', '', '', 'got 1')
"""Fails the last of four tests."""

OUTLIERS: dict[str, tuple[list[Verification], list[str]]] = {
    'all agree against it': ([WRONG, WRONG, WRONG], ['test_3']),
    'most agree, and the other fails it too': ([WRONG, WRONG, ran('got 5', '', '', 'got 7')], ['test_3']),
    'most agree, and the other could not be run': ([WRONG, WRONG, Verification(error='SyntaxError')], ['test_3']),
    'one of them passes it': ([WRONG, WRONG, ran('got 5', '', '', '')], []),
    'they give different values': ([WRONG, ran('', '', '', 'got 2'), ran('', '', '', 'got 3')], []),
    'only half agree': ([WRONG, WRONG, ran('got 5', '', '', 'got 7'), ran('got 6', '', '', 'got 7')], []),
    'one implementation alone': ([WRONG], []),
    'none could be run': ([Verification(error='SyntaxError')] * 2, []),
    'too many tests': ([ran('', '', 'got 0', 'got 1')] * 3, []),
    'an example of the user': ([ran('', '', '', test_example_1='got 1')] * 3, []),
}


@each_case('case', OUTLIERS)
def test_a_test_is_an_outlier_if_most_implementations_agree_against_it_and_none_passes_it(case: str) -> None:
    results, expected = OUTLIERS[case]
    assert outlying_tests(results) == expected
