from tool import title_case


def test_words_begin_with_a_capital() -> None:
    assert title_case('gone with the wind') == 'Gone with the Wind'


def test_small_words_are_capital_at_the_beginning_and_the_end() -> None:
    assert title_case('the world we live in') == 'The World We Live In'
    assert title_case('Lost In Space') == 'Lost in Space'
    assert title_case('a') == 'A'


def test_an_apostrophe_does_not_begin_a_word() -> None:
    assert title_case("don't look, it’s here") == "Don't Look, It’s Here"


def test_a_hyphen_begins_a_word() -> None:
    assert title_case('a state-of-the-art plan') == 'A State-of-the-Art Plan'


def test_capitals_inside_a_word_are_kept() -> None:
    assert title_case('how NASA uses my iPhone') == 'How NASA Uses My iPhone'


def test_a_text_in_capitals_is_written_anew() -> None:
    assert title_case('THE LORD OF THE RINGS') == 'The Lord of the Rings'


def test_spaces_and_punctuation_are_kept() -> None:
    assert title_case('  so…\n(many)  things ') == '  So…\n(Many)  Things '
    assert title_case('') == ''


def test_letters_of_other_languages() -> None:
    assert title_case('élan über 3d ñandú') == 'Élan Über 3d Ñandú'
