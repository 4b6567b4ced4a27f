from tool import is_valid_isbn


def test_isbns_of_13_digits() -> None:
    assert is_valid_isbn('9780306406157') is True
    assert is_valid_isbn('9791034304868') is True
    assert is_valid_isbn('9781449355739') is True
    assert is_valid_isbn('9780306406158') is False
    assert is_valid_isbn('9780306406517') is False


def test_isbns_of_10_digits() -> None:
    assert is_valid_isbn('0306406152') is True
    assert is_valid_isbn('0306406153') is False
    assert is_valid_isbn('0306401652') is False


def test_the_check_digit_may_be_an_x() -> None:
    assert is_valid_isbn('080442957X') is True
    assert is_valid_isbn('080442957x') is True
    assert is_valid_isbn('030640615X') is False
    assert is_valid_isbn('08044X9579') is False


def test_spaces_and_hyphens_do_not_matter() -> None:
    assert is_valid_isbn(' 978-0-306-40615-7 ') is True
    assert is_valid_isbn('0 306 40615 2') is True


def test_13_digits_begin_with_978_or_979() -> None:
    assert is_valid_isbn('4006381333931') is False


def test_other_texts_are_not_valid() -> None:
    assert is_valid_isbn('') is False
    assert is_valid_isbn('978030640615') is False
    assert is_valid_isbn('97803064061570') is False
    assert is_valid_isbn('ISBN 0306406152') is False
