"""Words are compared by their stems."""

from habilis.core.stems import Stemmer


def test_forms_of_a_word_have_the_same_stem() -> None:
    stemmer = Stemmer()
    assert stemmer.terms('Titles, titled; TITLE') == ['titl', 'titl', 'titl']
    assert stemmer.terms('Café cafe') == ['cafe', 'cafe']


def test_stop_words_and_punctuation_are_dropped() -> None:
    assert Stemmer().terms('What is the, of – and…?') == []
    assert Stemmer({'boat'}).terms('the boat') == ['the']


def test_languages_without_spaces_are_compared_by_characters_and_pairs_of_them() -> None:
    assert Stemmer().terms('東京駅 in 2030年') == ['東', '京', '駅', '東京', '京駅', '2030', '年']
    assert Stemmer().terms('駅') == ['駅']


def test_any_text_has_terms_that_an_index_can_hold() -> None:
    assert Stemmer().terms('\0\ud800 "x_y"') == ['x', 'y']
    assert [len(term) for term in Stemmer().terms('z' * 500)] == [60]
