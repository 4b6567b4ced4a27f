from tool import group_by

ANN, BOB, CAT = {'name': 'Ann', 'city': 'Rome'}, {'name': 'Bob', 'city': 'Oslo'}, {'name': 'Cat', 'city': 'Rome'}


def _error(rows: list[dict], key: str) -> str:
    try:
        group_by(rows, key)
    except ValueError as error:
        return str(error)
    return ''


def test_rows_with_the_same_value_are_together() -> None:
    assert group_by([ANN, BOB, CAT], 'city') == {'Rome': [ANN, CAT], 'Oslo': [BOB]}


def test_groups_are_in_the_order_of_their_first_row() -> None:
    assert list(group_by([BOB, ANN, CAT], 'city')) == ['Oslo', 'Rome']


def test_any_plain_value_names_a_group() -> None:
    rows = [{'n': 0}, {'n': None}, {'n': 0}]
    assert group_by(rows, 'n') == {0: [{'n': 0}, {'n': 0}], None: [{'n': None}]}


def test_no_rows_have_no_groups() -> None:
    assert group_by([], 'city') == {}


def test_a_row_without_the_key_is_refused() -> None:
    assert "row 2 has no 'city'; its keys are ['name']" in _error([ANN, {'name': 'Dan'}], 'city')


def test_a_list_cannot_name_a_group() -> None:
    assert 'row 1 has [1]' in _error([{'n': [1]}], 'n')
