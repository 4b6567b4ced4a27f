"""robots.txt, as RFC 9309 has it: groups by user agent, the longest rule that matches, `*` and `$`."""

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

MAX_BYTES = 500 << 10
"""How much of a robots.txt is read, as the RFC says."""

MAX_DELAY = 10.0
"""The longest `Crawl-delay` that is kept to, in seconds."""

_LINE = re.compile(r'^\s*(user-agent|allow|disallow|crawl-delay)\s*:\s*([^#]*)', re.IGNORECASE)


@dataclass(frozen=True)
class RobotRules:
    """What one agent may fetch from one site. No rules: everything."""

    rules: tuple[tuple[str, bool], ...] = ()
    """Patterns of paths, and whether they are allowed."""

    delay: float = 0.0

    def allow(self, path: str) -> bool:
        """Whether a path, with its query, may be fetched."""
        target = _normal(path)
        matching = [(len(pattern), allowed) for pattern, allowed in self.rules if _matches(pattern, target)]
        return max(matching, default=(0, True))[1]  # of two equally long ones, the one that allows


NOTHING = RobotRules((('/', False),))


def parse_robots(text: str, agent: str) -> RobotRules:
    """The rules for an agent, by its name in lower case."""
    own: list[tuple[str, str]] = []
    common: list[tuple[str, str]] = []
    targets: list[list[tuple[str, str]]] = []
    has_own = in_names = False
    for line in text.removeprefix('\ufeff').splitlines():
        if (found := _LINE.match(line)) is None:
            continue
        key, value = found.group(1).lower(), found.group(2).strip()
        if key == 'user-agent':
            targets = targets if in_names else []
            name = value.lower().split('/')[0].strip()
            has_own = has_own or name == agent
            targets += [own] if name == agent else [common] if name == '*' else []
        else:
            for target in targets:
                target.append((key, value))
        in_names = key == 'user-agent'
    return _rules(own if has_own else common)


def _rules(lines: list[tuple[str, str]]) -> RobotRules:
    rules = [(_normal(value), key == 'allow') for key, value in lines if key != 'crawl-delay' and value]
    delays = [value for key, value in lines if key == 'crawl-delay' and re.fullmatch(r'\d{1,6}(\.\d*)?', value)]
    return RobotRules(tuple(rules), min(float(delays[-1]), MAX_DELAY) if delays else 0.0)


def _normal(path: str) -> str:
    """One way to write each path."""
    return quote(unquote(path), safe="/*$?=&;:@!'(),+~%-._")


def _matches(pattern: str, path: str) -> bool:
    """Without regular expressions: a pattern with many stars would take years."""
    is_whole = pattern.endswith('$')
    first, *others = pattern.removesuffix('$').split('*')
    if not path.startswith(first):
        return False
    place = len(first)
    if not others:
        return not is_whole or place == len(path)
    *middle, last = others
    for piece in middle:
        if (found := path.find(piece, place)) < 0:
            return False
        place = found + len(piece)
    return path.endswith(last) and len(path) - len(last) >= place if is_whole else path.find(last, place) >= 0
