"""robots.txt: groups, the longest rule, wildcards, and files that were made to take long."""

from habilis.tools.web.robots import MAX_DELAY, parse_robots
from tests.cases import each_case

FILE = """\
# comment
User-agent: other
Disallow: /

User-agent: *
Crawl-delay: 2
Disallow: /private
Allow: /private/open$
Disallow: /*.zip$
Disallow: /a%2fb # encoded
Allow:
Disallow:
Sitemap: /sitemap.xml
"""


@each_case(
    ('path', 'allowed'),
    [
        ('/', True),
        ('/private', False),
        ('/private/x?y=1', False),
        ('/private/open', True),
        ('/private/opened', False),
        ('/files/x.zip', False),
        ('/files/x.zip?y', True),
        ('/a/b', False),
        ('/sitemap.xml', True),
    ],
)
def test_the_longest_rule_decides(path: str, allowed: bool) -> None:
    assert parse_robots(FILE, 'habilis').allow(path) is allowed


def test_rules_of_our_own_replace_those_for_everybody() -> None:
    rules = parse_robots('User-agent: *\nDisallow: /\nUser-agent: x\nUser-agent: Habilis/2\nDisallow: /y', 'habilis')
    assert (rules.allow('/x'), rules.allow('/y')) == (True, False)
    assert parse_robots('Disallow: /\n\nnonsense\n\0\xff', 'habilis').allow('/x')


def test_a_delay_is_kept_to_within_reason() -> None:
    assert parse_robots(FILE, 'habilis').delay == 2
    assert parse_robots('User-agent: *\nCrawl-delay: 999999', 'habilis').delay == MAX_DELAY
    assert parse_robots('User-agent: *\nCrawl-delay: soon', 'habilis').delay == 0


def test_many_stars_take_no_time() -> None:
    rules = parse_robots(f'User-agent: *\nDisallow: /{"*a" * 5000}b$', 'habilis')
    assert rules.allow(f'/{"a" * 4000}')
