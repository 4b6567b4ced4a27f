from tool import extract_numbers


def test_whole_and_decimal_numbers() -> None:
    numbers = extract_numbers('2 apples cost 3.50, not 4.0')
    assert numbers == [2, 3.5, 4.0]
    assert [type(number) for number in numbers] == [int, float, float]


def test_signs() -> None:
    assert extract_numbers('from -3 to +4, (-5) and −6.5') == [-3, 4, -5, -6.5]
    assert type(extract_numbers('-3')[0]) is int
    assert type(extract_numbers('+3')[0]) is int


def test_a_hyphen_between_numbers_is_no_sign() -> None:
    assert extract_numbers('3-4') == [3, 4]
    assert extract_numbers('on 2024-01-31') == [2024, 1, 31]


def test_commas_between_thousands() -> None:
    assert extract_numbers('$1,234,567.89 and 12,000') == [1234567.89, 12000]


def test_other_commas_separate_numbers() -> None:
    assert extract_numbers('1,2,3') == [1, 2, 3]
    assert extract_numbers('1,2345 and 1234,567') == [1, 2345, 1234, 567]


def test_decimals_without_a_leading_zero() -> None:
    assert extract_numbers('.5 or -.25') == [0.5, -0.25]


def test_exponents() -> None:
    assert extract_numbers('2e6, 1.5E-3, 7em') == [2e6, 0.0015, 7]


def test_dots_that_end_a_sentence_or_separate_versions() -> None:
    assert extract_numbers('I have 3. You have v1.2.3') == [3, 1.2, 3]


def test_large_numbers_are_exact() -> None:
    assert extract_numbers('12345678901234567890') == [12345678901234567890]


def test_a_text_without_numbers_has_none() -> None:
    assert extract_numbers('') == []
    assert extract_numbers('none. - e') == []
