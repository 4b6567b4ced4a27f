from tool import split_into_chunks


def _error(size: int) -> str:
    try:
        split_into_chunks([1, 2, 3], size)
    except ValueError as error:
        return str(error)
    return ''


def test_chunks_of_equal_size() -> None:
    assert split_into_chunks([1, 2, 3, 4], 2) == [[1, 2], [3, 4]]


def test_the_last_chunk_may_be_shorter() -> None:
    assert split_into_chunks(['a', 'b', 'c', 'd'], 3) == [['a', 'b', 'c'], ['d']]


def test_chunks_of_one_item() -> None:
    assert split_into_chunks([1, None, 3], 1) == [[1], [None], [3]]


def test_a_chunk_may_be_larger_than_the_list() -> None:
    assert split_into_chunks([1, 2], 10) == [[1, 2]]


def test_an_empty_list_has_no_chunks() -> None:
    assert split_into_chunks([], 3) == []


def test_a_size_below_one_is_refused() -> None:
    assert 'at least 1, not 0' in _error(0)
    assert 'at least 1, not -2' in _error(-2)
