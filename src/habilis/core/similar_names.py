"""`similar_names`, for "did you mean": in bounded time, because a stranger may have chosen the names."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from heapq import nlargest
from itertools import islice

MAX_LENGTH = 100
"""Maximum number of characters of a name that is compared."""

MAX_NAMES = 2000
"""Maximum number of names that are looked at."""

MAX_WORK = 200_000
"""Maximum number of pairs of characters that are compared, over all names."""


def similar_names(name: str, known: Iterable[str], *, n: int = 1, cutoff: float = 0.6) -> list[str]:
    """At most `n` of the known names that are similar to one, the most similar first."""
    if len(name) > MAX_LENGTH:
        return []
    found: list[tuple[float, str]] = []
    matcher, work = SequenceMatcher(b=name), 0
    for other in islice(known, MAX_NAMES):
        if len(other) > MAX_LENGTH:
            continue
        matcher.set_seq1(other)
        if matcher.real_quick_ratio() < cutoff or matcher.quick_ratio() < cutoff:
            continue
        work += len(name) * len(other)
        if work > MAX_WORK:
            break
        if (ratio := matcher.ratio()) >= cutoff:
            found.append((ratio, other))
    return [other for _, other in nlargest(n, found)]
