"""Shortens a conversation that no longer fits: what people wrote stays, earlier steps become a line each.

Code loses nothing by it: the variables of the run are still in the sandbox.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from habilis.models.contract import Message
from habilis.models.tokens import count_message_tokens, count_tokens

KEPT_STEPS = 3
ROOM = 0.8
"""Share of the context for messages; the rest is for the reply."""

_LINE = 160
_MAX_LINES = 60
_TITLE = 'Earlier steps, shortened (their variables are still there):'
_BEFORE = 'Earlier steps of a conversation before this one, shortened:'
_LEFT_OUT = re.compile(r'- \((\d+) before these are left out\)')


@dataclass(frozen=True, kw_only=True)
class AuthoredMessage:
    """A message of the history and who wrote it."""

    message: Message
    by_user: bool = False
    digest: bool = False
    """It stands for steps that were removed."""

    earlier: bool = False
    """It is from before this run."""


def earlier_turn(message: Message) -> AuthoredMessage:
    """A turn made from the history that a run was given."""
    digest = message.by_agent and message.text.startswith((_TITLE, _BEFORE))
    if digest:  # its sandbox is gone, and the variables with it
        message = replace(message, text=message.text.replace(_TITLE, _BEFORE, 1))
    by_user = message.role == 'user' and not message.by_agent
    return AuthoredMessage(message=message, by_user=by_user, digest=digest, earlier=True)


def is_too_long(messages: Sequence[Message], context_tokens: int, reply_tokens: int) -> bool:
    """Whether the messages leave too little room for a reply."""
    return count_message_tokens(messages) > room_for(context_tokens, reply_tokens)


def room_for(context_tokens: int, reply_tokens: int) -> float:
    """Tokens that messages may take, so that there is room for a reply."""
    return min(context_tokens * ROOM, context_tokens - reply_tokens)


def compact(
    history: Sequence[AuthoredMessage], *, keep: int = KEPT_STEPS, earlier_tokens: float | None = None
) -> tuple[AuthoredMessage, ...]:
    """The history with all but the last `keep` steps as a digest; unchanged if that is no shorter.

    What people wrote stays. Only with `earlier_tokens`, what they wrote before this run joins the digest of that time,
    whose newest lines are kept, up to so many tokens: a long chat would otherwise never fit again.
    """
    turns = tuple(history)
    starts = [number for number, turn in enumerate(turns) if turn.message.role == 'assistant']
    edge = 0 if len(starts) <= keep else starts[-keep] if keep else len(turns)
    if earlier_tokens is not None and not edge:
        edge = starts[0] if starts else len(turns)
    recent = turns[edge:] if keep > 1 else tuple(_shortened(turn) for turn in turns[edge:])
    shorter = (*_digested(turns[:edge], earlier_tokens), *recent)
    return shorter if _size(shorter) < _size(turns) else turns


def _digested(old: Sequence[AuthoredMessage], earlier_tokens: float | None) -> Iterator[AuthoredMessage]:
    """What people wrote, then a line for each other message: those from before this run, then those of it."""
    before, now = list[str](), list[str]()
    for turn in old:
        stays = turn.by_user and not (turn.earlier and earlier_tokens is not None)
        if stays or turn.message.role == 'system':
            yield turn
            continue
        lines = before if turn.earlier else now
        if turn.digest:
            lines += turn.message.text.split('\n')[1:]
        elif line := _line(turn):
            lines.append(line)
    for title, lines in ((_BEFORE, before), (_TITLE, now)):
        if lines:
            text = '\n'.join([title, *_newest(lines, earlier_tokens if lines is before else None)])
            message = Message(role='user', text=text, by_agent=True)
            yield AuthoredMessage(message=message, digest=True, earlier=lines is before)


def _newest(lines: list[str], tokens: float | None) -> list[str]:
    before = [int(found[1]) for line in lines if (found := _LEFT_OUT.fullmatch(line))]
    lines = [line for line in lines if not _LEFT_OUT.fullmatch(line)]
    kept = lines[-_MAX_LINES:]
    while tokens is not None and kept and count_tokens('\n'.join(kept)) > tokens:
        kept = kept[max(1, len(kept) // 8) :]
    gone = sum(before) + len(lines) - len(kept)
    return [f'- ({gone} before these are left out)', *kept] if gone else kept


def _line(turn: AuthoredMessage) -> str:
    message = turn.message
    text = ' '.join((message.text or ' '.join(call.arguments for call in message.calls)).split())
    who = 'you' if message.role == 'assistant' else 'user' if turn.by_user else 'saw'
    return f'- {who}: {text[:_LINE]}{"…" if len(text) > _LINE else ""}' if text else ''


def _shortened(turn: AuthoredMessage) -> AuthoredMessage:
    """The turn with a shorter observation, for a single step that is too long by itself."""
    message = turn.message
    if turn.by_user or turn.digest or message.role in ('system', 'assistant') or len(message.text) < 2000:
        return turn
    text = f'{message.text[:1000]}\n[… {len(message.text) - 1500:,} characters truncated …]\n{message.text[-500:]}'
    return replace(turn, message=replace(message, text=text))


def _size(turns: Sequence[AuthoredMessage]) -> int:
    return count_message_tokens([turn.message for turn in turns])
