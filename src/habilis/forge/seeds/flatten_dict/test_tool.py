from tool import flatten_dict


def _error(data: dict, separator: str = '.') -> str:
    try:
        flatten_dict(data, separator)
    except ValueError as error:
        return str(error)
    return ''


def test_keys_of_nested_dicts_are_joined() -> None:
    assert flatten_dict({'a': {'b': {'c': 1}, 'd': 2}, 'e': 3}) == {'a.b.c': 1, 'a.d': 2, 'e': 3}


def test_items_of_lists_have_their_index_as_key() -> None:
    assert flatten_dict({'tags': ['x', {'y': 1}, ['z']]}) == {'tags.0': 'x', 'tags.1.y': 1, 'tags.2.0': 'z'}


def test_the_order_is_kept() -> None:
    assert list(flatten_dict({'b': {'z': 1, 'a': 2}, 'a': 3})) == ['b.z', 'b.a', 'a']


def test_empty_dicts_lists_and_none_are_values() -> None:
    assert flatten_dict({'a': {}, 'b': [], 'c': {'d': None, 'e': ''}}) == {'a': {}, 'b': [], 'c.d': None, 'c.e': ''}
    assert flatten_dict({}) == {}


def test_another_separator() -> None:
    assert flatten_dict({'a': {'b': 1}}, separator='/') == {'a/b': 1}


def test_keys_that_are_no_text_become_text() -> None:
    assert flatten_dict({1: {2: 'x'}}) == {'1.2': 'x'}


def test_two_values_with_the_same_key_are_refused() -> None:
    assert "two values have the key 'a.b'" in _error({'a': {'b': 1}, 'a.b': 2})
    assert _error({'a': {'b': 1}, 'a.b': 2}, separator='/') == ''


def test_the_data_is_not_changed() -> None:
    data = {'a': {'b': [1]}}
    assert flatten_dict(data) == {'a.b.0': 1}
    assert data == {'a': {'b': [1]}}
