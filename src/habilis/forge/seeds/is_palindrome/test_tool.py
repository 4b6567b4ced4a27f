from tool import is_palindrome


def test_words() -> None:
    assert is_palindrome('level') is True
    assert is_palindrome('levels') is False
    assert is_palindrome('noon') is True
    assert is_palindrome('ab') is False


def test_case_spaces_and_punctuation_do_not_matter() -> None:
    assert is_palindrome('A man, a plan, a canal: Panama!') is True


def test_digits_count() -> None:
    assert is_palindrome('12321') is True
    assert is_palindrome('1 a 2') is False


def test_letters_of_other_languages() -> None:
    assert is_palindrome('А роза упала на лапу Азора') is True
    assert is_palindrome('Été') is True
    assert is_palindrome('ete\u0301') is False


def test_a_text_without_letters_is_a_palindrome() -> None:
    assert is_palindrome('') is True
    assert is_palindrome('?!') is True
