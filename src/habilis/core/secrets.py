"""Finds secrets in text: those that were registered, and anything that looks like a key.

The one detector of Habilis: for logs, traces, messages of providers and exported runs. It takes linear time, and leaves
hashes, UUIDs, certificates and ordinary words alone.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator

HIDDEN = '***'
_MIN_LENGTH = 6  # shorter values may be ordinary words
_registered: set[str] = set()

_TOKENS = re.compile(
    r"""
    \b(?:
        (?:sk|pk|rk)-(?:proj|ant|or|admin|svcacct)-[A-Za-z0-9_*-]{8,}     # OpenAI, Anthropic, OpenRouter
      | (?:sk|pk|rk)-(?=[A-Za-z0-9_*-]{0,200}\d)[A-Za-z0-9_*-]{8,}
      | (?:sk|pk|rk)-[A-Za-z0-9_*-]{20,}
      | (?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{8,} | whsec_[A-Za-z0-9+/]{16,}   # Stripe
      | gsk_[A-Za-z0-9]{16,} | xai-[A-Za-z0-9]{16,} | hf_[A-Za-z0-9]{16,}  # Groq, xAI, Hugging Face
      | gh[opusr]_[A-Za-z0-9]{16,} | github_pat_[A-Za-z0-9_]{16,}          # GitHub
      | glpat-[A-Za-z0-9_-]{16,}                                           # GitLab
      | npm_[A-Za-z0-9]{20,} | pypi-Ag[A-Za-z0-9_-]{20,}
      | xox[abceoprs]-[A-Za-z0-9-]{10,} | xapp-\d-[A-Za-z0-9-]{10,}        # Slack
      | AIza[A-Za-z0-9_-]{20,} | ya29\.[A-Za-z0-9_-]{20,} | GOCSPX-[A-Za-z0-9_-]{16,}   # Google
      | (?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA)[A-Z0-9]{12,}                     # AWS
      | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}                         # SendGrid
      | dop_v1_[a-f0-9]{32,} | AGE-SECRET-KEY-1[A-Z0-9]{30,}               # DigitalOcean, age
      | \d{8,10}:AA[A-Za-z0-9_-]{30,}                                      # Telegram
      | eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*){1,3}  # JSON web tokens
    )""",
    re.VERBOSE,
)

_KEPT_PREFIX = (
    re.compile(r"""(?P<keep>\bauthorization["']?\s{0,5}[:=]\s{0,5}["']?[a-z]{1,20}\s+)[^\s"',;]+""", re.IGNORECASE),
    re.compile(
        r"""(?P<keep>\bBearer\s+)(?:(?=[^\s"',;]{0,200}[0-9_~+/=])[^\s"',;]{8,}|[^\s"',;]{20,})""", re.IGNORECASE
    ),
    re.compile(
        r"""(?P<keep>["']?\b(?:x-)?(?:goog-)?api[-_]?key["']?\s*[:=]\s*["']?)[^\s"',;&)}\]]+""",
        re.IGNORECASE,
    ),
    re.compile(
        r"""(?P<keep>(?:secret|token|password|access[-_]?key|account[-_]?key)[\w-]{0,20}\\?["']?\s{0,5}[:=]\s{0,5}\\?["']?)
        (?=[^\s"'\\;,&]{0,200}\d)[A-Za-z0-9+/=_.~!@#$%^*-]{16,}""",
        re.IGNORECASE | re.VERBOSE,
    ),
    re.compile(r'(?P<keep>\b\w{1,20}://[^\s/:@]*:)[^\s/@]+(?=@)'),
    re.compile(r'(?P<keep>\bhooks\.slack\.com/services/)[A-Za-z0-9/_]{10,}'),
)
"""What comes before the secret stays."""

_BASIC = re.compile(r'(\bBasic\s+)([A-Za-z0-9+/_-]{6,}={0,2})')

_PEM_BEGIN = re.compile(r'-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}')
_PEM_END = re.compile(r'-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}')
_PEM_HEADERS = r'(?:Proc-Type|DEK-Info|Version|Comment|Hash):[^\r\n\\]{0,200}'
_PEM_LINE = r'(?:[A-Za-z0-9+/=]{16,}|[A-Za-z0-9+/]{1,63}={1,2})'
_PEM_BREAK = r"""(?:\s|\\+[nr]|["'+,])"""
_PEM_BODY = re.compile(rf'(?:{_PEM_BREAK}|{_PEM_HEADERS}|{_PEM_LINE}(?={_PEM_BREAK}|-|\Z))*+')
_PEM_CHARACTERS = frozenset('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n\\')
_MAX_PEM = 50_000
"""Maximum distance between the two ends of a key; without the other end, what looks like base64 is hidden."""


def hide(secrets: Iterable[str]) -> None:
    """Register secrets, which `redact` removes from now on."""
    _registered.update(secret for secret in secrets if len(secret) >= _MIN_LENGTH)


def redact(text: str) -> str:
    """Remove registered secrets, and anything that looks like a key."""
    for secret in sorted(_registered, key=len, reverse=True):  # a long secret may contain a short one
        text = text.replace(secret, HIDDEN)
    if 'PRIVATE KEY' in text:
        text = ''.join(_without_private_keys(text))
    for pattern in _KEPT_PREFIX:
        text = pattern.sub(rf'\g<keep>{HIDDEN}', text)
    text = _BASIC.sub(_hide_password, text)
    return _TOKENS.sub(HIDDEN, text)


def _hide_password(found: re.Match[str]) -> str:
    """Base64 of `user:password`; `Basic arithmetic` is none."""
    try:
        decoded = base64.b64decode(found[2] + '=' * (-len(found[2]) % 4), altchars=b'-_' if '-' in found[2] else None)
    except (binascii.Error, ValueError):
        return found[0]
    return f'{found[1]}{HIDDEN}' if b':' in decoded else found[0]


def _without_private_keys(text: str) -> Iterator[str]:
    """The text between private keys in PEM form: whole, cut off at either end, on one line or several."""
    position = 0
    ends = [(end.start(), end.end()) for end in _PEM_END.finditer(text)]
    ends.reverse()
    for begin in _PEM_BEGIN.finditer(text):
        if begin.start() < position:
            continue
        yield from _without_tails(text, position, begin.start(), ends)
        while ends and ends[-1][0] < begin.end():
            ends.pop()
        if ends and ends[-1][0] - begin.end() <= _MAX_PEM:
            position = ends.pop()[1]
        else:
            body = _PEM_BODY.match(text, begin.end())
            position = begin.end() if body is None else body.end()
        yield HIDDEN
    yield from _without_tails(text, position, len(text), ends)


def _without_tails(text: str, start: int, stop: int, ends: list[tuple[int, int]]) -> Iterator[str]:
    """The text from `start` to `stop`, without keys of which only the end is there."""
    while ends and ends[-1][1] <= stop:
        first, last = ends.pop()
        if first < start:
            continue
        while first > start and text[first - 1] in _PEM_CHARACTERS:
            first -= 1
        yield text[start:first]
        yield HIDDEN
        start = last
    yield text[start:stop]
