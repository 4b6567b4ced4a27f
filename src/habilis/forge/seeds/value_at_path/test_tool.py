from tool import value_at_path

DATA = {'users': [{'name': 'Ann', 'tags': ['x', 'y']}, {'name': None}], 'a.b': [False], 'n': 5}


def _error(path: str | list[str | int]) -> str:
    try:
        value_at_path(DATA, path)
    except ValueError as error:
        return str(error)
    return ''


def test_keys_and_indices() -> None:
    assert value_at_path(DATA, 'users[0].name') == 'Ann'
    assert value_at_path(DATA, 'users.0.tags.1') == 'y'
    assert value_at_path(DATA, 'users[0][tags]') == ['x', 'y']


def test_a_list_may_be_at_the_top() -> None:
    assert value_at_path([[1, 2], [3]], '[0][1]') == 2


def test_negative_indices_count_from_the_end() -> None:
    assert value_at_path(DATA, 'users[0].tags[-1]') == 'y'
    assert value_at_path(DATA, 'users[0].tags[-2]') == 'x'


def test_none_and_false_are_values() -> None:
    assert value_at_path(DATA, 'users[1].name') is None
    assert value_at_path(DATA, ['a.b', 0]) is False


def test_an_empty_path_is_the_data_itself() -> None:
    assert value_at_path(DATA, '') is DATA
    assert value_at_path(DATA, []) is DATA


def test_a_missing_key_is_refused_with_the_keys_that_are_there() -> None:
    assert "no 'nobody' of 'nobody.name'; the keys there are ['users', 'a.b', 'n']" in _error('nobody.name')


def test_a_missing_item_is_refused() -> None:
    assert "no item '2'" in _error('users[2]')
    assert "no item '-3'" in _error('users[-3]')
    assert "no item 'name'" in _error('users.name')


def test_nothing_is_inside_a_number() -> None:
    assert 'the value there is 5' in _error('n.x')


def test_a_wrong_path_is_refused() -> None:
    assert 'not a path' in _error('users[0')
    assert 'not a path' in _error('users..name')
