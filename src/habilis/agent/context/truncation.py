"""Truncates long text: head and tail stay, with a note of what was left out."""

from dataclasses import dataclass

from habilis.models.tokens import count_tokens

HEAD_SHARE = 0.6
"""Share of the kept text that comes from the beginning."""

MAX_TOKENS_PER_CHARACTER = 3
MAX_CHARACTERS_PER_TOKEN = 8
"""A longer token is blank space or a ruler, of which enough is kept anyway."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Maximum length of a text."""

    tokens: int = 2000
    lines: int = 200
    enabled: bool = True

    def __post_init__(self) -> None:
        if self.tokens < 20 or self.lines < 2:
            msg = f'an observation needs at least 20 tokens and 2 lines, not {self.tokens} and {self.lines}'
            raise ValueError(msg)


@dataclass(frozen=True, kw_only=True)
class Truncated:
    """A text within its bounds."""

    text: str
    is_truncated: bool = False


def truncate(text: str, bounds: Bounds, *, where: str = '') -> Truncated:
    """Keep head and tail. `where` is added to the note: how to see the rest."""
    if not bounds.enabled:
        return Truncated(text=text)
    fits = text.count('\n') < bounds.lines
    if fits and (len(text) * MAX_TOKENS_PER_CHARACTER <= bounds.tokens or count_tokens(text) <= bounds.tokens):
        return Truncated(text=text)
    head, tail = (text, text) if fits else _by_lines(text, bounds.lines)
    if fits or count_tokens(head) + count_tokens(tail) > bounds.tokens:
        first = int(bounds.tokens * HEAD_SHARE)
        head, tail = _head(head, first), _tail(tail, bounds.tokens - first)
        tail = tail[max(0, len(head) + len(tail) - len(text) + 1) :]  # the two must not meet
    head, tail = head.removesuffix('\n'), tail.removeprefix('\n')
    dropped = text[len(head) : len(text) - len(tail)]
    lines = dropped.removeprefix('\n').removesuffix('\n').count('\n') + 1
    what = f'{len(dropped):,} characters truncated{f" in {lines:,} lines" if lines > 1 else ""}'
    note = f'[… {what}{"; " + where if where else ""} …]'
    return Truncated(text=f'{head}\n{note}\n{tail}' if tail else f'{head}\n{note}', is_truncated=True)


def _by_lines(text: str, most: int) -> tuple[str, str]:
    lines = text.split('\n')
    first = max(1, int(most * HEAD_SHARE))
    return '\n'.join(lines[:first]), '\n'.join(lines[first - most :])


def _head(text: str, tokens: int) -> str:
    """The beginning, in whole lines if that costs less than half of it."""
    size = min(len(text), tokens * MAX_CHARACTERS_PER_TOKEN)
    while size > 1 and (counted := count_tokens(text[:size])) > tokens:
        size = min(size - 1, int(size * tokens / counted))
    kept = text[: max(1, size)]
    whole = kept.rfind('\n') if len(kept) < len(text) else -1
    return kept[:whole] if whole > len(kept) / 2 else kept


def _tail(text: str, tokens: int) -> str:
    """The same for the end."""
    size = min(len(text), tokens * MAX_CHARACTERS_PER_TOKEN)
    while size > 1 and (counted := count_tokens(text[-size:])) > tokens:
        size = min(size - 1, int(size * tokens / counted))
    kept = text[-max(1, size) :]
    whole = kept.find('\n') if len(kept) < len(text) else -1
    return kept[whole + 1 :] if 0 <= whole < len(kept) / 2 else kept
