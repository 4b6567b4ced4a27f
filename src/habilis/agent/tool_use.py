"""What a small model does with the tools it has: asks none of them, asks about a part, or asks once and calls it the
best of all."""

import re
from collections.abc import Iterable, Mapping, Sequence

from habilis.tools import CallRecord

_LISTED = re.compile(r'\b\w++(?:, \w++)+(?:,? (?:and|or) \w++)?')
_HIGHEST = re.compile(r'(?<!at )\b(?:most|least|best|worst|[a-z]{3,}est)\b')
_NOT_HIGHEST = frozenset(
    'contest digest forest harvest honest interest invest latest manifest modest nearest request suggest'.split()
)


def unused(task: str, tools: Mapping[str, str], calls: Sequence[CallRecord]) -> str | None:
    """A tool that the task names and that nothing has called: its result was invented."""
    words, called = set(re.findall(r'\w+', task)), {call.name for call in calls}
    return next((name for name in tools if name in words and name not in called), None)


def left_out(task: str, calls: Sequence[CallRecord]) -> tuple[list[str], list[str]] | None:
    """Things that the task lists, and those of them that no tool was asked about, though one was about others."""
    asked = set(_texts(calls))
    for found in _LISTED.findall(task):
        listed = [name for name in re.findall(r'\w+', found) if name not in ('and', 'or')]
        done = [name for name in listed if name in asked]
        # The comma after which a sentence goes on separates other words than those of the list.
        missing = [name for name in listed if name not in asked and name.istitle() == listed[0].istitle()]
        if len(done) >= 2 and missing:
            return [*(name for name in listed if name in done or name in missing)], missing
    return None


def asked_once(task: str, calls: Sequence[CallRecord]) -> tuple[str, str] | None:
    """The word for the highest or lowest, and the tool that was asked once and so cannot have told which that is."""
    word = next((word for word in _HIGHEST.findall(task) if word not in _NOT_HIGHEST), None)
    if word is None or not calls:
        return None
    first = calls[0]
    same = all(call.name == first.name and call.arguments == first.arguments for call in calls)
    return (word, first.name) if same else None


def _texts(calls: Sequence[CallRecord]) -> Iterable[str]:
    return (value for call in calls for value in call.arguments.values() if isinstance(value, str))
