from tool import markdown_table


def test_the_keys_are_the_header() -> None:
    rows = [{'name': 'Ann', 'age': 31}, {'name': 'Bob', 'age': 27}]
    assert markdown_table(rows) == '| name | age |\n| --- | --- |\n| Ann | 31 |\n| Bob | 27 |'


def test_the_columns_are_those_of_all_rows() -> None:
    assert markdown_table([{'a': 1}, {'b': 2, 'a': 3}]) == '| a | b |\n| --- | --- |\n| 1 |  |\n| 3 | 2 |'


def test_none_is_empty_and_zero_is_not() -> None:
    assert markdown_table([{'a': None, 'b': 0, 'c': False}]).endswith('\n|  | 0 | False |')


def test_pipes_are_escaped_in_cells_and_names() -> None:
    assert markdown_table([{'a|b': 'x|y'}]) == '| a\\|b |\n| --- |\n| x\\|y |'


def test_lines_of_a_cell_are_broken_inside_it() -> None:
    assert markdown_table([{'a': 'one\ntwo\r\nthree'}]).endswith('\n| one<br>two<br>three |')


def test_no_rows_are_no_table() -> None:
    assert markdown_table([]) == ''
    assert markdown_table([{}]) == ''
