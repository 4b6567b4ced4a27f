from tool import slugify


def test_words_are_joined_in_lower_case() -> None:
    assert slugify('Hello, World!') == 'hello-world'
    assert slugify('  many -- odd__characters  ') == 'many-odd-characters'


def test_accents_are_removed() -> None:
    assert slugify('Crème Brûlée') == 'creme-brulee'
    assert slugify('Cre\u0300me') == 'creme'
    assert slugify('İzmir Ǿ') == 'izmir-o'


def test_special_latin_letters_are_spelled_out() -> None:
    assert slugify('Straße') == 'strasse'
    assert slugify('Æsir œuvre Øre Łódź Đà ðþ') == 'aesir-oeuvre-ore-lodz-da-dth'


def test_apostrophes_do_not_split_words() -> None:
    assert slugify("Don't stop, it’s on") == 'dont-stop-its-on'


def test_other_scripts_are_kept() -> None:
    assert slugify('Мой мир') == 'мой-мир'
    assert slugify('हिन्दी 2') == 'हिन्दी-2'


def test_another_separator() -> None:
    assert slugify('a b c', separator='_') == 'a_b_c'
    assert slugify('a b c', separator='') == 'abc'


def test_a_text_without_letters_is_empty() -> None:
    assert slugify('') == ''
    assert slugify('?!') == ''
