from tool import deduplicate


def test_the_first_of_equal_items_is_kept() -> None:
    assert deduplicate([3, 1, 3, 2, 1]) == [3, 1, 2]
    assert deduplicate(['b', 'a', 'b']) == ['b', 'a']


def test_an_empty_list_stays_empty() -> None:
    assert deduplicate([]) == []


def test_case_counts() -> None:
    assert deduplicate(['a', 'A', 'ä']) == ['a', 'A', 'ä']


def test_dicts_and_lists_are_compared_by_their_content() -> None:
    assert deduplicate([{'a': [1], 'b': 2}, {'b': 2, 'a': [1]}, {'a': [2], 'b': 2}]) == [
        {'a': [1], 'b': 2},
        {'a': [2], 'b': 2},
    ]
    assert deduplicate([[1, 2], [2, 1], [1, 2], []]) == [[1, 2], [2, 1], []]


def test_numbers_of_the_same_value_are_duplicates() -> None:
    assert deduplicate([1, 1.0, 2]) == [1, 2]


def test_true_is_not_one_and_none_is_not_false() -> None:
    unique = deduplicate([1, True, 0, False, None, True])
    assert [repr(item) for item in unique] == ['1', 'True', '0', 'False', 'None']


def test_lists_and_tuples_differ() -> None:
    assert deduplicate([[1], (1,), [1], (1,)]) == [[1], (1,)]


def test_the_list_itself_is_not_changed() -> None:
    items = [1, 1]
    assert deduplicate(items) == [1]
    assert items == [1, 1]
