from tool import is_valid_card_number


def test_valid_numbers() -> None:
    for number in ('4111111111111111', '5500005555555559', '378282246310005', '6011000990139424'):
        assert is_valid_card_number(number) is True, number


def test_a_wrong_digit_is_noticed() -> None:
    for number in ('4111111111111112', '5500005555555558', '378282246310015', '6011000990139924'):
        assert is_valid_card_number(number) is False, number


def test_swapped_digits_are_noticed() -> None:
    assert is_valid_card_number('6011000990139442') is False


def test_spaces_and_hyphens_do_not_matter() -> None:
    assert is_valid_card_number(' 4111 1111-1111 1111 ') is True


def test_the_length_is_12_to_19() -> None:
    assert is_valid_card_number('0' * 11) is False
    assert is_valid_card_number('0' * 12) is True
    assert is_valid_card_number('0' * 19) is True
    assert is_valid_card_number('0' * 20) is False


def test_other_characters_are_not_valid() -> None:
    assert is_valid_card_number('') is False
    assert is_valid_card_number('4111x1111111111111') is False
    assert is_valid_card_number('٤١١١١١١١١١١١١١١١') is False
