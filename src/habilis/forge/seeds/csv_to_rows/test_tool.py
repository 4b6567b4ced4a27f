from tool import csv_to_rows


def _error(text: str, delimiter: str = ',') -> str:
    try:
        csv_to_rows(text, delimiter)
    except ValueError as error:
        return str(error)
    return ''


def test_each_line_is_a_row_with_the_names_of_the_first() -> None:
    assert csv_to_rows('name,age\nAnn,31\nBob,27\n') == [{'name': 'Ann', 'age': '31'}, {'name': 'Bob', 'age': '27'}]


def test_quoted_values_may_have_commas_quotes_and_lines() -> None:
    assert csv_to_rows('a,b\r\n"x, y","say ""hi""\nnow"\r\n') == [{'a': 'x, y', 'b': 'say "hi"\nnow'}]


def test_another_delimiter() -> None:
    assert csv_to_rows('a;b\n1,5;2', delimiter=';') == [{'a': '1,5', 'b': '2'}]


def test_missing_values_are_empty_and_empty_lines_are_skipped() -> None:
    assert csv_to_rows('\na,b,c\n\n1\n,2,3\n\n') == [{'a': '1', 'b': '', 'c': ''}, {'a': '', 'b': '2', 'c': '3'}]


def test_the_byte_order_mark_of_spreadsheets_is_no_part_of_a_name() -> None:
    assert csv_to_rows('\ufeffa\n1') == [{'a': '1'}]


def test_a_text_without_lines_has_no_rows() -> None:
    assert csv_to_rows('') == []
    assert csv_to_rows('a,b\n') == []


def test_a_name_that_occurs_twice_is_refused() -> None:
    assert 'occurs twice' in _error('a,b,a\n1,2,3')


def test_more_values_than_names_are_refused() -> None:
    assert '3 values for 2 columns' in _error('a,b\n1,2,3')


def test_wrong_quotes_and_delimiters_are_refused() -> None:
    assert 'not CSV' in _error('a\n"x" y')
    assert 'not CSV' in _error('a\n"never closed')
    assert 'not CSV' in _error('a', delimiter='')
