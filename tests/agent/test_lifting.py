"""Tables in the text of a task are found; sentences with commas are not tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.agent.lifting import lift_table, lifted_variables, rows_of, typed_off


def test_a_table_between_sentences_is_lifted_whole() -> None:
    table = 'name,age\nAna,34\nBo,27\n'
    task = f'Here is a table:\n{table}\nWho is older, Ana or Bo?'
    assert lift_table(task) == table
    assert lifted_variables(task) == {'table': table, 'rows': [{'name': 'Ana', 'age': 34}, {'name': 'Bo', 'age': 27}]}
    assert lifted_variables('Who is older?') == {}


def test_tabs_and_semicolons_separate_too() -> None:
    assert lift_table('a\tb\n1\t2\n3\t4') == 'a\tb\n1\t2\n3\t4\n'
    assert lift_table('go:\na;b\n1;2\n3;4\n') == 'a;b\n1;2\n3;4\n'
    assert rows_of('a;b\n1;2,5\n3;4\n') == [{'a': 1, 'b': '2,5'}, {'a': 3, 'b': '4'}]


def test_only_columns_of_numbers_become_numbers() -> None:
    rows = rows_of('id,mean,n,mixed\n007,1.5,0,1\n008,-2,-3,x\n')
    assert rows == [{'id': '007', 'mean': 1.5, 'n': 0, 'mixed': '1'}, {'id': '008', 'mean': -2, 'n': -3, 'mixed': 'x'}]


def test_lines_without_names_of_columns_have_no_rows() -> None:
    for table in ('1,2\n3,4\n5,6\n', 'a,a\n1,2\n3,4\n', 'a,\n1,2\n3,4\n', 'a,b\n"1,2\n3,4\n', ''):
        assert rows_of(table) == []
    assert lifted_variables('1,2\n3,4\n5,6') == {'table': '1,2\n3,4\n5,6\n'}


TABLE = 'name,age\nAna,34\nBo,27\nCy,9\n'


@pytest.mark.parametrize(
    ('reply', 'typed'),
    [
        (f'```python\ntable = """\n{TABLE}', True),
        ("rows = [\n    {'name': 'Ana', 'age': 34},\n    {'name': 'Bo', 'age': 27},\n", True),
        ("rows = [\n    {'name': 'Ana', 'age': 34},\n    {'name': 'Bo', 'age': 27}", False),  # not yet
        ("names = ['Ana', 'Bo', 'Cy']\nages = [34, 27, 9]\n", False),
        ('for row in rows:\n    print(row["name"], row["age"])\n', False),
        ('', False),
        ('x = [Ana34]\ny = [Bo27]\n', False),  # parts of other words
        ("x = [34, 'Ana']\ny = [27, 'Bo']\n", False),  # in another order
    ],
)
def test_a_table_that_is_written_again_is_seen_early(reply: str, *, typed: bool) -> None:
    assert typed_off(reply, TABLE) is typed


def test_a_table_of_nothing_is_not_seen_everywhere() -> None:
    assert not typed_off('x = 1\ny = 2\nz = 3\n', 'a,b\n,\n,\n')
    assert not typed_off('x = [12, 34]\ny = [56, 78]\n', '1,2\n3,4\n5,6\n')


def test_prose_code_and_short_lists_stay_where_they_are() -> None:
    for text in ('', 'Sort 3, 1, 2.', 'One, two.\nThree, four.\nFive, six.', 'a,b\n1,2', 'a,b\n1,2,3\n4'):
        assert lift_table(text) == ''


@given(st.text(alphabet='ab,;\t \n'))
def test_whatever_is_lifted_stands_in_the_task(text: str) -> None:
    assert lift_table(text).rstrip('\n') in text
    for row in rows_of(lift_table(text)):
        assert all(str(value) in text for value in row.values())
