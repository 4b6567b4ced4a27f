"""Tables in the text of a task are found; sentences with commas are not tables."""

from hypothesis import given
from hypothesis import strategies as st

from habilis.agent.lifting import lift_table


def test_a_table_between_sentences_is_lifted_whole() -> None:
    table = 'name,age\nAna,34\nBo,27\n'
    assert lift_table(f'Here is a table:\n{table}\nWho is older, Ana or Bo?') == {'table': table}


def test_tabs_and_semicolons_separate_too() -> None:
    assert lift_table('a\tb\n1\t2\n3\t4') == {'table': 'a\tb\n1\t2\n3\t4\n'}
    assert lift_table('go:\na;b\n1;2\n3;4\n') == {'table': 'a;b\n1;2\n3;4\n'}


def test_prose_code_and_short_lists_stay_where_they_are() -> None:
    for text in ('', 'Sort 3, 1, 2.', 'One, two.\nThree, four.\nFive, six.', 'a,b\n1,2', 'a,b\n1,2,3\n4'):
        assert lift_table(text) == {}


@given(st.text(alphabet='ab,;\t \n'))
def test_whatever_is_lifted_stands_in_the_task(text: str) -> None:
    for table in lift_table(text).values():
        assert table.rstrip('\n') in text
