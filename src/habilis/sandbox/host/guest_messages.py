"""Parses messages of a guest, which may be forged to cost the host time or memory.

The C parser of JSON holds the GIL until it returns, so a long message would stop the event loop even if a thread parses
it. So a long message is parsed in pieces: Python walks through the containers that are longer than a piece, and the C
parser gets the values inside. Time and memory are linear in the length of the message, which is bounded.
"""

import re
from typing import cast

from habilis.core.codec import CodecError, Json, check_size, parse, parse_with, scan, unpack
from habilis.core.narrowing import fields_in, is_dict, is_list

PARSED_AT_ONCE = 1 << 16
"""Max characters that are given to the C parser at once, except for a long string, which it copies quickly."""

_STRING_OR_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
_QUICK = frozenset('oekxl')
"""Output, notes, and the cancelling of a call."""

_SPACE = re.compile(r'[ \t\n\r]+')
_NUMBER = '0123456789+-.eE'
_SPACES = frozenset(' \t\n\r')


def is_quick(message: str) -> bool:
    """Whether the reply to a message takes no time, and calls no tool."""
    return message[:1] in _QUICK and len(message) <= PARSED_AT_ONCE


def parse_message(text: str) -> Json:
    """Parse JSON text of a guest. Raises `CodecError`, which names the limit that was exceeded."""
    if len(text) <= PARSED_AT_ONCE:
        return parse(text)
    try:
        check_size(text)
        return _LongText(text).parse()
    except CodecError as error:
        msg = f'a message that {error}'
        raise CodecError(msg) from None
    except (ValueError, RecursionError, StopIteration, IndexError) as error:
        msg = f'not JSON: {type(error).__name__}: {str(error)[:100]}'
        raise CodecError(msg) from None


def parse_answer(text: str) -> dict[str, Json]:
    """Parse the answer to a request, which may have the saved variables at its end."""
    answer = parse_with(text, 'state', parse_message)
    if not isinstance(answer, dict):
        msg = 'the sandbox did not answer with an object'
        raise CodecError(msg)
    return answer


class _LongText:
    """A text and the piece of it that is being parsed. `_unclosed` are places of containers that end after it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._move(0)

    def parse(self) -> Json:
        """The value of the whole text."""
        value, end = self._value(self._skip(0))
        if self._skip(end) != len(self._text):
            msg = 'extra text after the value'
            raise ValueError(msg)
        return value

    def _move(self, start: int) -> None:
        self._start, self._end = start, min(start + PARSED_AT_ONCE, len(self._text))
        self._piece = self._text[start : self._end]
        is_last = self._end == len(self._text)
        self._sure = self._end if is_last else start + len(self._piece.rstrip(_NUMBER))  # a number may go on after it
        self._unclosed: frozenset[int] = frozenset()

    def _value(self, at: int) -> tuple[Json, int]:
        """The value at a place, and the place after it."""
        if at >= self._end:
            self._move(at)
        if at in self._unclosed:
            return self._container(at)
        try:
            value, end = scan(self._piece, at - self._start)
            if self._start + end <= self._sure:
                return value, self._start + end
        except (ValueError, StopIteration):
            if self._end == len(self._text):
                raise
        if at > self._start:  # the piece ends within this value
            self._move(at)
            return self._value(at)
        return self._long_value(at)

    def _long_value(self, at: int) -> tuple[Json, int]:
        """A value that is longer than a piece, which starts with it."""
        if self._text[at] == '"':
            return scan(self._text, at)
        opened: list[int] = []
        for match in _STRING_OR_BRACKET.finditer(self._piece):
            mark = self._piece[match.start()]
            if mark in '[{':
                opened.append(at + match.start())
            elif mark != '"' and opened:
                opened.pop()
        self._unclosed = frozenset(opened)
        if at not in self._unclosed:
            msg = f'no value, or a number of more than {PARSED_AT_ONCE:,} digits'
            raise ValueError(msg)
        return self._container(at)

    def _container(self, at: int) -> tuple[Json, int]:
        is_list = self._text[at] == '['
        end_mark = ']' if is_list else '}'
        items: list[Json] = []
        keys: list[str] = []
        at = self._skip(at + 1)
        mark = ','
        if self._text[at] == end_mark:
            mark, at = end_mark, at + 1
        while mark == ',':
            at = self._short_items(items, at) if is_list else self._short_pairs(keys, items, at)
            if not is_list:
                key, at = self._key(at)
                keys.append(key)
            item, at = self._value(at)
            items.append(item)
            mark, at = self._mark(at)
        if mark != end_mark:
            msg = f'{end_mark!r} expected'
            raise ValueError(msg)
        return items if is_list else dict(zip(keys, items, strict=True)), at

    def _short_items(self, items: list[Json], at: int) -> int:
        """Parse items of a list as long as they are in the piece and followed by another; the place of that one."""
        piece, unclosed, offset = self._piece, self._unclosed, at - self._start
        try:
            while offset + self._start not in unclosed:
                item, end = scan(piece, offset)
                if piece[end] != ',':
                    break
                items.append(item)
                offset = end + 1
        except (ValueError, StopIteration, IndexError):
            pass  # the piece ends within this item
        return self._skip(self._start + offset)

    def _short_pairs(self, keys: list[str], items: list[Json], at: int) -> int:
        """The same for pairs of an object."""
        piece, unclosed, offset = self._piece, self._unclosed, at - self._start
        try:
            while piece[offset] == '"':
                key, colon = scan(piece, offset)
                if piece[colon] != ':' or colon + 1 + self._start in unclosed:
                    break
                item, end = scan(piece, colon + 1)
                if piece[end] != ',':
                    break
                keys.append(cast('str', key))
                items.append(item)
                offset = end + 1
        except (ValueError, StopIteration, IndexError):
            pass  # the piece ends within this pair
        return self._skip(self._start + offset)

    def _key(self, at: int) -> tuple[str, int]:
        key, at = self._value(at)
        mark, at = self._mark(at)
        if mark != ':' or not isinstance(key, str):
            msg = "'key': expected"
            raise ValueError(msg)
        return key, at

    def _mark(self, at: int) -> tuple[str, int]:
        """The punctuation mark at a place, and the place of what follows it."""
        at = self._skip(at)
        return self._text[at], self._skip(at + 1)

    def _skip(self, at: int) -> int:
        while self._text[at : at + 1] in _SPACES:
            found = _SPACE.match(self._text, at)
            assert found is not None
            at = found.end()
        return at


class RefusedCall(Exception):
    """A call that cannot be made; `reply` is what the guest gets."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.reply: Json = {'error': [kind, message]}


def fields_of(body: str, *types: type) -> list[Json]:
    """The fields of a message, each checked for its type."""
    try:
        parts = parse_message(body)
    except CodecError as error:
        raise RefusedCall('RuntimeError', f'malformed message: {error}') from None
    if isinstance(parts, list) and [type(part) for part in parts] == [*types]:
        return parts
    raise RefusedCall('RuntimeError', 'malformed message')


def arguments_of(packed: Json) -> tuple[list[object], dict[str, object]]:
    """Positional and named arguments of a call. Raises `CodecError`."""
    values = unpack(packed)
    if is_list(values) and len(values) == 2:
        args, kwargs = values
        if is_list(args) and is_dict(kwargs) and len(named := fields_in(kwargs)) == len(kwargs):
            return args, named
    msg = 'malformed arguments'
    raise CodecError(msg)
