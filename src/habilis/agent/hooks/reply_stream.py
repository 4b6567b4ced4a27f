"""Splits a reply into prose and code while it is streamed."""

import json
import re
from typing import Literal, NamedTuple

from habilis.agent.hooks.prose_filter import ProseFilter
from habilis.agent.parsing.blocks import PYTHON_LABELS

_FENCE = re.compile(r'\n[ \t]*(?P<mark>`{3,}|~{3,})[ \t]*(?P<label>\w+)[^\n`]*\n')
_CODE_ARGUMENT = re.compile(r'[\s}\]",]*\{\s*"code"\s*:\s*"')
_STRING_PART = re.compile(
    r'(?:[^"\\]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}|\\u(?![dD][89abAB])[0-9a-fA-F]{4}|\\[^u])*'
)


class Piece(NamedTuple):
    """A part of a reply."""

    kind: Literal['prose', 'code']
    text: str


class ReplyStream:
    """Takes a streamed reply and returns its prose, and its code as far as it is marked as Python.

    Code without such marks is held back: it is shown when it runs.
    """

    def __init__(self) -> None:
        self._prose = ProseFilter()
        self._mark = ''
        """The fence that the code is in."""

        self._line = ''
        """Line of code that may become the end of the fence."""

        self._is_after_code = False
        self._arguments = ''
        self._is_in_string = False
        self._ends_line = False
        self._shown: list[str] = []

    def feed(self, text: str) -> list[Piece]:
        """The pieces that are known now."""
        pieces: list[Piece] = []
        while text:
            text = self._feed_code(text, pieces) if self._mark else self._feed_prose(text, pieces)
        self._shown += [piece.text for piece in pieces]
        return pieces

    def _feed_prose(self, text: str, pieces: list[Piece]) -> str:
        self._add_prose(self._prose.feed(text), pieces)
        opened = _FENCE.match(self._prose.held)
        if opened is None or opened['label'].lower() not in PYTHON_LABELS:
            return ''
        self._mark, self._line = opened['mark'], ''
        self._shown.append(opened[0])
        rest = self._prose.held[opened.end() :]
        self._prose.skip_held()
        return rest

    def _add_prose(self, prose: str, pieces: list[Piece]) -> None:
        if self._is_after_code:
            prose = prose.lstrip('\n')
        if prose:
            pieces.append(Piece('prose', prose))
            self._is_after_code = False

    def _feed_code(self, text: str, pieces: list[Piece]) -> str:
        """Take code up to the end of its fence. Returns what follows it."""
        *lines, rest = f'{self._line}{text}'.split('\n')
        for number, line in enumerate(lines):
            if self._is_closing(line):
                self._mark, self._line, self._is_after_code = '', '', True
                self._shown.append(line)
                return '\n'.join([*lines[number + 1 :], rest])
            pieces.append(Piece('code', f'{line}\n'))
        self._line = rest
        return ''

    def _is_closing(self, line: str) -> bool:
        line = line.strip()
        return len(line) >= len(self._mark) and not line.strip(self._mark[0])

    @property
    def open_code(self) -> str:
        """The line of code that is being written."""
        return '' if self._line.strip()[:1] in ('`', '~') else self._line

    def feed_arguments(self, arguments: str) -> str:
        """The code in new arguments of a function call."""
        self._arguments += arguments
        code = ''
        while True:
            if not self._is_in_string:
                opened = _CODE_ARGUMENT.match(self._arguments)
                if opened is None:
                    return code
                self._arguments, self._is_in_string = self._arguments[opened.end() :], True
                self._ends_line = False
            part = _STRING_PART.match(self._arguments)
            assert part is not None
            try:
                text = json.loads(f'"{part[0]}"', strict=False)
            except ValueError:  # an invalid escape; the code is shown when it runs, if it does
                self._arguments, self._is_in_string = '', False
                return code
            if text:
                code, self._ends_line = code + text, text.endswith('\n')
            self._arguments = self._arguments[part.end() :]
            if not self._arguments.startswith('"'):
                return code
            self._arguments, self._is_in_string = self._arguments[1:], False
            code += '' if self._ends_line else '\n'

    def finish(self) -> list[Piece]:
        """The rest of a complete reply."""
        pieces: list[Piece] = []
        if self._mark and self._line.strip() and not self._is_closing(self._line):
            pieces.append(Piece('code', f'{self._line}\n'))
        self._is_after_code = self._is_after_code or bool(self._mark)
        self._add_prose(self._prose.finish(), pieces)
        self._shown += [piece.text for piece in pieces]
        self._mark, self._line = '', ''
        return pieces

    def has_shown(self, text: str) -> bool:
        """Whether the pieces were all of this text."""
        return bool(text.strip()) and ''.join(''.join(self._shown).split()) == ''.join(text.split())


class MarkdownBlocks:
    """Collects streamed Markdown into blocks that can be rendered: paragraphs, lists, tables, fences."""

    def __init__(self) -> None:
        self.rest = ''
        """The block that is not complete."""

    def feed(self, text: str) -> list[str]:
        """The blocks that are complete now."""
        self.rest += text
        blocks: list[str] = []
        start = position = 0
        while (end := self.rest.find('\n\n', position)) >= 0:
            position = end + 2
            if (self.rest.count('\n```', start, end) + self.rest.startswith('```', start)) % 2:
                continue  # inside a fence
            blocks.append(self.rest[start:end])
            start = position
        self.rest = self.rest[start:]
        return [block for block in blocks if block.strip()]

    def finish(self) -> list[str]:
        """The last block."""
        block, self.rest = self.rest, ''
        return [block] if block.strip() else []
