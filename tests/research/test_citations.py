"""What a model writes is checked sentence by sentence."""

from habilis.research.citations import NO_SOURCE, WRONG_QUOTE, check_text, without_addresses
from tests.cases import each_case

PAGES = {'s101': 'The bridge was\nopened in 1932, after Dr. Lee had died.', 's102': 'It is 503 m long.'}


@each_case(
    ('text', 'checked'),
    [
        ('It opened in 1932 [s101].', 'It opened in 1932 [s101].'),
        ('It opened in 1932. [s101] It is long. [s102]', 'It opened in 1932 [s101]. It is long [s102].'),
        ('Both (S101, s102) say so.', 'Both [s101][s102] say so.'),
        ('Dr. Lee died before, e.g. in 1931 [s101].', 'Dr. Lee died before, e.g. in 1931 [s101].'),
        ('It opened [s101]. It is nice.', f'It opened [s101]. It is nice. {NO_SOURCE}'),
        ('It is nice [s999].', f'It is nice. {NO_SOURCE}'),
        ('It "was opened in 1932," they say [s101].', 'It "was opened in 1932," they say [s101].'),
        ('It “was opened … Dr. Lee had died” [s101].', 'It “was opened … Dr. Lee had died” [s101].'),
        ('It "was opened in 1931" [s101].', f'It "was opened in 1931" [s101]. {WRONG_QUOTE}'),
        ('It "is 503 m long" [s101].', f'It "is 503 m long" [s101]. {WRONG_QUOTE}'),
        ('A "beam bridge" [s102].', 'A "beam bridge" [s102].'),
        ('- One [s101].\n- Two.', f'- One [s101].\n- Two. {NO_SOURCE}'),
        ('One\nsentence [s101].', 'One sentence [s101].'),
        ('## Head\n\nText [s101].', '## Head\n\nText [s101].'),
        (
            '| what | source |\n|---|---|\n| 1932 | [s101] |\n| never | |',
            f'| what | source |\n|---|---|\n| 1932 | [s101] |\n| never | {NO_SOURCE} |',
        ),
    ],
)
def test_a_sentence_without_a_source_or_with_an_invented_quote_is_marked(text: str, checked: str) -> None:
    found = check_text(text, PAGES)
    assert found.text == checked
    assert len(found.problems) == checked.count(NO_SOURCE) + checked.count(WRONG_QUOTE)


@each_case(
    'text',
    [
        'See https://evil.example/a?b=c now',
        'See [the words](https://evil.example/a "title") now',
        'See ![x](//evil.example/pixel.png) now',
        'See <https://evil.example> now',
        'See <a href="https://evil.example">this</a> now',
        'See [the words][1] now\n\n[1]: https://evil.example',
        'See www.evil.example now',
        'See evil.example/path now',
        'See javascript:evil() now',
        'See FTP://evil.example now',
        'See mailto:evil@evil.example now',
        'See <!-- evil --> now',
    ],
)
def test_no_address_of_a_model_stays(text: str) -> None:
    assert 'evil' not in without_addresses(text)
    assert without_addresses(text).startswith('See ')


def test_citations_and_plain_text_are_no_addresses() -> None:
    text = 'Node.js 3.14 [s101][s102] and/or km/h (s. 3): 5 < 6, ratio 1:2.'
    assert without_addresses(text) == text
