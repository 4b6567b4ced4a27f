from tool import word_frequencies


def test_words_are_counted() -> None:
    assert word_frequencies('to be or not to be') == {'to': 2, 'be': 2, 'or': 1, 'not': 1}


def test_the_most_frequent_word_is_first_and_equals_keep_their_order() -> None:
    assert list(word_frequencies('b a c c a c')) == ['c', 'a', 'b']
    assert list(word_frequencies('z y x')) == ['z', 'y', 'x']


def test_case_and_punctuation_do_not_matter() -> None:
    assert word_frequencies('Stop! "stop", (STOP) - well-known...') == {'stop': 3, 'well': 1, 'known': 1}


def test_apostrophes_inside_a_word_belong_to_it() -> None:
    assert word_frequencies("don’t 'don't' ' rock'n'roll") == {"don't": 2, "rock'n'roll": 1}


def test_digits_are_words() -> None:
    assert word_frequencies('7 of 9, 7') == {'7': 2, 'of': 1, '9': 1}


def test_words_of_other_scripts() -> None:
    assert word_frequencies('Straße straße') == {'straße': 2}
    assert word_frequencies('caf\u00e9 cafe\u0301') == {'caf\u00e9': 2}
    assert word_frequencies('हिन्दी, мир') == {'हिन्दी': 1, 'мир': 1}


def test_a_text_without_words_has_none() -> None:
    assert word_frequencies('') == {}
    assert word_frequencies(' … !? ') == {}
