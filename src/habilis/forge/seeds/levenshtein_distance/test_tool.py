from tool import levenshtein_distance


def test_equal_texts_have_no_distance() -> None:
    assert levenshtein_distance('same', 'same') == 0
    assert levenshtein_distance('', '') == 0


def test_an_empty_text_is_as_far_as_the_other_is_long() -> None:
    assert levenshtein_distance('', 'abc') == 3
    assert levenshtein_distance('abcd', '') == 4


def test_one_edit() -> None:
    assert levenshtein_distance('cat', 'cut') == 1
    assert levenshtein_distance('cat', 'cats') == 1
    assert levenshtein_distance('cat', 'at') == 1


def test_several_edits() -> None:
    assert levenshtein_distance('kitten', 'sitting') == 3
    assert levenshtein_distance('saturday', 'sunday') == 3
    assert levenshtein_distance('abc', 'xyz') == 3


def test_the_order_of_the_texts_does_not_matter() -> None:
    assert levenshtein_distance('flaw', 'lawn') == levenshtein_distance('lawn', 'flaw') == 2


def test_case_and_accents_count() -> None:
    assert levenshtein_distance('Über', 'uber') == 1
    assert levenshtein_distance('straße', 'strasse') == 2
