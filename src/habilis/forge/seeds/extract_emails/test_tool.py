from tool import extract_emails


def test_addresses_are_found_in_their_order() -> None:
    assert extract_emails('Ask zoe@example.com or adam@example.org.') == ['zoe@example.com', 'adam@example.org']


def test_punctuation_around_an_address_is_no_part_of_it() -> None:
    assert extract_emails('<a@b.de>, (c@d.fr); mailto:e@f.it! "g@h.es"') == ['a@b.de', 'c@d.fr', 'e@f.it', 'g@h.es']


def test_tags_dots_and_subdomains_belong_to_an_address() -> None:
    assert extract_emails('first.last+tag_1@mail.my-host.co.uk') == ['first.last+tag_1@mail.my-host.co.uk']


def test_each_address_is_listed_once_whatever_its_case() -> None:
    assert extract_emails('Ann@Example.com ann@example.com bob@example.com') == ['Ann@Example.com', 'bob@example.com']


def test_what_is_no_address_is_not_found() -> None:
    assert extract_emails('a@b, @name, me@, x@y.z, a@-b.com, a@b..com, a@b.com2') == []
    assert extract_emails('') == []


def test_letters_of_other_scripts_end_an_address() -> None:
    assert extract_emails('联系foo@bar.com谢谢') == ['foo@bar.com']


def test_dots_are_inside_a_name_only() -> None:
    assert extract_emails('see...me@a.org, x..y@a.org, z.@a.org') == ['me@a.org', 'y@a.org']


def test_long_texts_take_no_time() -> None:
    for text in ('a' * 4_000, 'a.' * 4_000, 'a@' + 'a.' * 2_000):
        assert extract_emails(f'{text} a@b.com') == ['a@b.com']
