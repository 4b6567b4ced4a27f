"""Shortens a conversation that no longer fits: what people wrote stays, earlier steps become a digest.

A digest has an entry for each message, or the summary that a model with a large context wrote. Code loses nothing by
it: the variables of the run are still in the sandbox, and the digest names them.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from habilis.agent.context.observation import CHANGED_VARIABLES, NEW_VARIABLES
from habilis.agent.context.truncation import Bounds, truncate
from habilis.agent.parsing.replies import parse_reply
from habilis.core.narrowing import fields_in
from habilis.models.contract import FunctionCall, Message
from habilis.models.tokens import count_message_tokens, count_tokens

KEPT_STEPS = 3
ROOM = 0.8
"""Share of the context for messages; the rest is for the reply."""

DIGEST_TOKENS = 6000
"""Maximum length of a digest."""

SUMMARY_TOKENS = 3000
"""Maximum length of the summary of a model."""

PROSE, CODE, SEEN = 500, 400, 600
"""Maximum characters of an entry: of what was said, of code, and of what code printed. Head and tail stay."""

VARIABLES = 1500
"""Maximum characters of the list of variables."""

_SHORT = 160
"""Maximum characters of an entry where all would be too long: the oldest become shorter first."""

_GAP = ' […] '
_TITLE = 'Earlier steps, shortened:'
_BEFORE = 'Earlier steps of a conversation before this one, shortened:'
_SUMMARY = '- summary: '
_SAID = '- user: '
_NAMED = '- variables that are there: '
_NEXT_ENTRY = re.compile(r'\n(?=- )')
"""Between two entries; further lines of an entry are indented."""

_HEADINGS = ('Goal', 'Decisions', 'Facts', 'Open', 'Variables')
"""Those that `prompts/compaction.md` asks for."""

_DESCRIBED = re.compile(rf'\n(?:{NEW_VARIABLES}|{CHANGED_VARIABLES}).*')
"""Variables as they were after a step; the digest describes them as they are."""

_LEFT_OUT = re.compile(r'- \((\d+) more are left out\)')


@dataclass(frozen=True, kw_only=True)
class AuthoredMessage:
    """A message of the history and who wrote it."""

    message: Message
    by_user: bool = False
    digest: bool = False
    """It stands for steps that were removed."""

    earlier: bool = False
    """It is from before this run."""

    note: str = ''
    """Advice at its end, which no digest needs: the end of an output is worth more."""


@dataclass(frozen=True, kw_only=True)
class Compaction:
    """How a conversation is shortened."""

    keep: int = KEPT_STEPS
    """Number of the last steps that stay as they are; with 1, a long observation of that step is shortened too."""

    tokens: float = DIGEST_TOKENS
    """Maximum length of a digest."""

    drop_earlier: bool = False
    """Whether what people wrote before this run joins the digest of that time: a long chat would otherwise never fit
    again."""

    variables: Sequence[str] = ()
    """The variables of the sandbox, described."""

    summary: str = ''
    """What the model wrote about the steps to remove; without it each gets an entry."""


DEFAULT = Compaction()


def earlier_turn(message: Message) -> AuthoredMessage:
    """A turn made from the history that a run was given."""
    digest = message.by_agent and message.text.startswith((_TITLE, _BEFORE))
    if digest:  # its sandbox is gone, and the variables with it
        message = replace(message, text='\n'.join([_BEFORE, *_entries_of(message.text)]))
    by_user = message.role == 'user' and not message.by_agent
    return AuthoredMessage(message=message, by_user=by_user, digest=digest, earlier=True)


def room_for(context_tokens: int, reply_tokens: int) -> float:
    """Tokens that messages may take, so that there is room for a reply."""
    return min(context_tokens * ROOM, context_tokens - reply_tokens)


def compact(history: Sequence[AuthoredMessage], how: Compaction = DEFAULT) -> tuple[AuthoredMessage, ...]:
    """The history with all but the last steps as a digest; unchanged if that is no shorter. What people wrote stays."""
    turns = tuple(history)
    starts = [number for number, turn in enumerate(turns) if turn.message.role == 'assistant']
    edge = 0 if len(starts) <= how.keep else starts[-how.keep] if how.keep else len(turns)
    if how.drop_earlier and not edge:
        edge = starts[0] if starts else len(turns)
    recent = turns[edge:] if how.keep > 1 else tuple(_shortened(turn) for turn in turns[edge:])
    shorter = (*_digested(turns[:edge], how), *recent)
    return shorter if _size(shorter) < _size(turns) else turns


def transcript(messages: Sequence[Message]) -> str:
    """All that was said and done, for a model that summarizes it: whole, and without function calls."""
    entries = (
        '\n'.join([f'{message.role}: {message.text}', *map(_call_text, message.calls)])
        for message in messages
        if message.role != 'system'
    )
    return '\n\n'.join(entries)


def summary_in(reply: str) -> str:
    """The summary in the reply of a model; empty if the reply has another form, such as code."""
    has_form = all(re.search(rf'^\W*{heading}\b', reply, re.MULTILINE | re.IGNORECASE) for heading in _HEADINGS)
    return truncate(reply.strip(), Bounds(tokens=SUMMARY_TOKENS)).text if has_form else ''


def _digested(old: Sequence[AuthoredMessage], how: Compaction) -> Iterator[AuthoredMessage]:
    """What people wrote, then the digests: of what was before this run, and of the run."""
    before, now = list[str](), list[str]()
    for turn in old:
        stays = turn.by_user and not (turn.earlier and how.drop_earlier)
        if stays or turn.message.role == 'system':
            yield turn
        else:
            (before if turn.earlier else now).extend(_entries(turn))
    if how.summary and (before or now):
        before = [entry for entry in before if entry.startswith(_SAID)]
        now = [f'{_SUMMARY}{_indented(how.summary)}']
    for title, entries in ((_BEFORE, before), (_TITLE, now)):
        if entries:
            lines = [title, *_fitted(entries, how.tokens)]
            if entries is now and how.variables:
                lines.append(clip(f'{_NAMED}{", ".join(how.variables)}', min(VARIABLES, max(80, int(how.tokens)))))
            message = Message(role='user', text='\n'.join(lines), by_agent=True)
            yield AuthoredMessage(message=message, digest=True, earlier=entries is before)


def _fitted(entries: list[str], tokens: float) -> list[str]:
    """The entries within so many tokens: the oldest are shortened first, then left out. Last goes what people wrote."""
    before = sum(int(found[1]) for entry in entries if (found := _LEFT_OUT.fullmatch(entry)))
    entries = [entry for entry in entries if not _LEFT_OUT.fullmatch(entry)]
    sizes = [count_tokens(entry) + 1 for entry in entries]
    order = sorted(range(len(entries)), key=lambda number: entries[number].startswith((_SAID, _SUMMARY)))
    for number in order:
        if sum(sizes) > tokens and not entries[number].startswith(_SUMMARY):
            entries[number] = clip(entries[number], _SHORT)
            sizes[number] = count_tokens(entries[number]) + 1
    gone = 0
    while order and sum(sizes) > tokens:
        number = order.pop(0)
        entries[number], sizes[number] = '', 0
        gone += 1
    gone += before
    return [*([f'- ({gone} more are left out)'] if gone else []), *filter(None, entries)]


def _entries(turn: AuthoredMessage) -> list[str]:
    message = turn.message
    if turn.digest:
        return _entries_of(message.text)
    if message.role == 'assistant':
        who, parts = '- you: ', _own_parts(message)
    else:
        seen = clip(_DESCRIBED.sub('', message.text.removesuffix(turn.note)), SEEN)
        who, parts = (_SAID, [clip(message.text, PROSE)]) if turn.by_user else ('- saw: ', [seen])
    text = '\n'.join(part for part in parts if part.strip())
    return [f'{who}{_indented(text)}'] if text else []


def _entries_of(digest: str) -> list[str]:
    """The entries of a digest, without its variables, which are described anew."""
    return [entry for entry in _NEXT_ENTRY.split(digest)[1:] if not entry.startswith(_NAMED)]


def _own_parts(message: Message) -> list[str]:
    """What the model said, and its code."""
    parsed = parse_reply(message.text)
    code = [*([parsed.code] if parsed.code else []), *map(_call_text, (*parsed.calls, *message.calls))]
    return [clip(parsed.prose, PROSE), *(clip(part, CODE) for part in code)]


def _call_text(call: FunctionCall) -> str:
    """The code that a call carries, or the call."""
    try:
        code = fields_in(json.loads(call.arguments)).get('code')
    except (ValueError, RecursionError):
        code = None
    return code if isinstance(code, str) else f'{call.name}({call.arguments})'


def _indented(text: str) -> str:
    return '\n  '.join(line.rstrip() for line in text.strip().splitlines() if line.strip())


def clip(text: str, limit: int) -> str:
    """Head and tail of a text that is too long."""
    if len(text) <= limit:
        return text
    tail = (limit - len(_GAP)) // 2
    return f'{text[: limit - len(_GAP) - tail]}{_GAP}{text[-tail:]}'


def _shortened(turn: AuthoredMessage) -> AuthoredMessage:
    """The turn with a shorter observation, for a single step that is too long by itself."""
    message = turn.message
    if turn.by_user or turn.digest or message.role in ('system', 'assistant') or len(message.text) < 2000:
        return turn
    text = f'{message.text[:1000]}\n[… {len(message.text) - 1500:,} characters truncated …]\n{message.text[-500:]}'
    return replace(turn, message=replace(message, text=text))


def _size(turns: Sequence[AuthoredMessage]) -> int:
    return count_message_tokens([turn.message for turn in turns])
