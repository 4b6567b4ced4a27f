"""Token estimates: offline, without a vocabulary, 10 to 15 ms for 100 kB.

The text is split as byte-pair tokenizers pre-split it (a word with the character before it, up to three digits, a run
of punctuation, a run of spaces), and each piece counts as its average number of tokens, as measured with the tokenizer
of Qwen2.5. Only digits count in groups of three, as with GPT and Llama, where Qwen has a token for each. On the texts
of `tests/models/token_reference.json` the total is within 5 % of that count and each text within 30 %; the averages
were fitted to most of these texts, so the error on others is larger. The worst is Dutch, 27 % too low, because plain
Latin letters count as English. For Qwen itself, bare numbers count a third to a half of what they are.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from habilis.models.contract import Message

TOKENS_PER_MESSAGE = 4
"""Tokens that a chat template adds to each message: role, start and end."""

TOKENS_PER_IMAGE = 1200
"""A rough mean: providers count 85 to 1,600 tokens, by the size of the image."""

_PIECE = re.compile(
    r"""
    [\W_]?[a-zA-Z]++(?![^\W\d_])         # an ASCII word with the character before it
    | [0-9]{1,3}
    | [ ]?[!-/:-@\[-`{-~]+[\r\n]*        # punctuation, with the line breaks after it
    | [\W_]?[^\W\d_]+                    # a word with other letters
    | \s+(?!\S)                          # spaces but the last one, which belongs to the next word
    | \s+
    | \d+
    | [ ]?[^\w\s]+[\r\n]*
    """,
    re.VERBOSE,
)
_HUMP = re.compile(r'[A-Z]?[a-z]+|[A-Z]+(?![a-z])')
_RUN = re.compile(r'(.)\1*', re.DOTALL)


@lru_cache(512)  # each step counts the whole conversation again
def count_tokens(text: str) -> int:
    """Estimate the number of tokens of a text; see the module docstring for its accuracy."""
    counts = Counter(_PIECE.findall(text))
    plain = accented = 0
    other = 0.0
    plain_cost = 0.0
    for piece, times in counts.items():
        if piece[-1].isalpha():
            if piece.isascii():
                plain += times
                plain_cost += times * _plain_word(piece)
            else:
                cost, latin = _other_word(piece)
                accented += times * latin
                other += times * cost
        elif piece[-1].isdecimal():
            other += times * (1 if piece.isascii() else len(piece))
        else:
            other += times * (_spaces(piece) if piece.isspace() else _signs(piece))
    return math.ceil(other + plain_cost * _foreign(plain, accented) - 1e-9)


def count_message_tokens(messages: Sequence[Message]) -> int:
    """Estimate the number of tokens of a conversation: texts, calls, and the overhead of the chat template."""
    texts = sum([count_tokens(message.text) + count_tokens(message.memory) for message in messages])
    calls = sum([_call_tokens(message) for message in messages if message.calls])
    images = sum([len(message.images) for message in messages])
    return TOKENS_PER_MESSAGE * len(messages) + TOKENS_PER_IMAGE * images + texts + calls


def _call_tokens(message: Message) -> int:
    return sum(TOKENS_PER_MESSAGE + count_tokens(call.name) + count_tokens(call.arguments) for call in message.calls)


def _foreign(plain: int, accented: int) -> float:
    """Factor for ASCII words. Accented words show that the text is not English, so fewer of its words are single
    tokens of a vocabulary made mostly from English.
    """
    return 1 + 0.35 * min(1.0, 10 * accented / (plain + accented)) if accented else 1.0


def _plain_word(piece: str) -> float:
    """Tokens of an ASCII word. After a space it is more often one token than after punctuation or inside a name."""
    before = piece[0]
    if before.isalpha():
        return _humps(piece, 0.0)
    if before == ' ':
        return _humps(piece[1:], 0.0)
    return _humps(piece[1:], 0.11) + _SIGN_BEFORE.get(before, 0.8)


_SIGN_BEFORE = {'_': 0.05, '.': 0.08, '/': 0.5, '-': 0.5, '(': 0.5, "'": 0.2, '\n': 1.0}
"""Extra tokens for the character before a word; some often share a token with it."""


def _humps(word: str, more: float) -> float:
    """Tokens of a word or of the parts of `camelCase`. `more` is the extra cost of each letter after the sixth."""
    size = len(word)
    if word[1:].islower() or size == 1:
        return 1.02 if size <= 6 else size / 4.5 if size > 16 else 1 + (size - 6) * (0.04 + more)
    if word.isupper():
        return 1 + 0.2 * max(0, size - 3)
    humps = _HUMP.findall(word)
    if size < 2.7 * len(humps):
        return size / 1.45  # base64 and the like
    return sum(_humps(hump, 0.11) for hump in humps) * 0.9


def _other_word(piece: str) -> tuple[float, bool]:
    """Tokens of a word with non-ASCII letters, and whether it is accented Latin."""
    before = 0.0 if piece[0].isalpha() or piece[0] == ' ' else _sign(piece[0])
    word = piece if piece[0].isalpha() else piece[1:]
    highest = max(word)
    if highest < '\u0100':
        return before + 0.7 + 0.22 * len(word), True
    if highest < '\u0250':  # Polish, Turkish
        return before + 0.9 + 0.32 * len(word), True
    if '\u1e00' <= highest < '\u1f00':  # Vietnamese
        return before + 1.1, False
    return before + max(1.0, sum(map(_letter, word))), False


def _letter(char: str) -> float:
    for end, cost in _LETTERS:
        if char < end:
            return cost
    return 3.0


_LETTERS = (
    ('\u0250', 0.3),  # Latin
    ('\u0400', 0.98),  # Greek
    ('\u0590', 0.41),  # Cyrillic
    ('\u0600', 0.48),  # Hebrew
    ('\u0700', 0.41),  # Arabic
    ('\u0e00', 1.25),  # South Asian scripts
    ('\u0e80', 0.52),  # Thai
    ('\u2e80', 1.25),
    ('\u3100', 0.62),  # kana
    ('\ua000', 0.54),  # Chinese characters
    ('\uac00', 1.5),
    ('\ud800', 0.94),  # Hangul
    ('\U00010000', 1.2),
)


def _signs(piece: str) -> float:
    if not piece.isascii():
        return float(sum(_sign(char) for char in piece if char not in ' \r\n'))
    signs = piece.strip()
    if len(signs) < 3:
        return 1.0
    broken = piece[-1] in '\r\n'
    if signs == signs[0] * len(signs):
        return 1 + len(signs) // 24 + 0.7 * broken
    return 1.3 if len(signs) == 3 else 0.44 * len(signs)


def _sign(char: str) -> float:
    if '\u0e00' <= char < '\u0e80':
        return 0.4  # Thai vowels and tones
    return 0.6 if char < '\x80' else 1.0 if char < '\U00010000' else 1.4


def _spaces(piece: str) -> float:
    indented = '\n' in piece and piece[-1] != '\n'  # the line break is a token of its own
    if len(piece) <= 12:
        return 1.0 + indented
    return max(1.0, sum(1 for _ in _RUN.finditer(piece)) / 3.6) + indented + len(piece) / 100
