from tool import rows_to_csv


def _error(delimiter: str) -> str:
    try:
        rows_to_csv([{'a': 1}], delimiter)
    except ValueError as error:
        return str(error)
    return ''


def test_the_keys_are_the_first_line() -> None:
    assert rows_to_csv([{'name': 'Ann', 'age': 31}, {'name': 'Bob', 'age': 27}]) == 'name,age\nAnn,31\nBob,27\n'


def test_values_with_commas_quotes_and_lines_are_quoted() -> None:
    assert rows_to_csv([{'a': 'x, y', 'b': 'say "hi"\nnow'}]) == 'a,b\n"x, y","say ""hi""\nnow"\n'
    assert rows_to_csv([{'a': 'x\ry'}]) == 'a\n"x\ry"\n'


def test_the_columns_are_those_of_all_rows() -> None:
    assert rows_to_csv([{'a': 1}, {'b': 2, 'a': 3}]) == 'a,b\n1,\n3,2\n'


def test_none_is_empty_and_other_values_are_written_as_text() -> None:
    assert rows_to_csv([{'a': None, 'b': True, 'c': 0, 'd': 1.5, 'e': 'ü'}]) == 'a,b,c,d,e\n,True,0,1.5,ü\n'


def test_another_delimiter() -> None:
    assert rows_to_csv([{'a': '1,5', 'b': 2}], delimiter=';') == 'a;b\n1,5;2\n'


def test_no_rows_are_no_text() -> None:
    assert rows_to_csv([]) == ''
    assert rows_to_csv([{}]) == ''


def test_a_delimiter_of_several_characters_is_refused() -> None:
    assert "'||' cannot be the delimiter" in _error('||')
    assert "'' cannot be the delimiter" in _error('')
