"""Finds code without a fence or tag, alone or between prose."""

import keyword
import re
from dataclasses import dataclass

from habilis.agent.parsing.syntax import is_obvious_code, margin_of, open_quote, statements, unframe

_SIMPLE = re.compile(
    r'import \w|from [\w.]+ import |(?:async )?def \w+\(|@\w|>>> |[\w.]+\(|'
    r'\w+(?:, ?\w+)* ?[-+*/]?= ?[^\s=]|\w+: ?[\w\[\], ]+ = '
)
_COMPOUND = re.compile(r'(?:async )?(?:for|while|with|if|try|class|def)\b')
_STRONG_SIGN = re.compile(
    r'\s*(?:import \w|from [\w.]+ import |(?:async )?def \w+\(|for \w.* in |print\(|final_answer\()'
)
_SENTENCE = re.compile(r'(?:[-*#>]+ |\d+[.)] |\*\*)?(?P<first>[^\W\d_][\w\'’-]*)[,:;]?(?: +[^\s=(\[{]+){2}')
_HEADING = re.compile(r'(?:[-*#>]+ |\*\*)?[A-Z][\w\'’-]*(?: [\w\'’-]+)*(?:[.:!?]|[.:]?\*\*)?')
_INLINE = re.compile(r'`([^`\n]+)`')
_KEYWORDS = frozenset(keyword.kwlist) | {'match', 'case', 'type'}


@dataclass(frozen=True, kw_only=True)
class UnfencedCode:
    """Code and the prose around it."""

    code: str
    prose: str = ''


def find_unfenced_code(text: str) -> UnfencedCode | None:
    """The code of a text without marks; None if it is prose, or too short to tell."""
    text = text.strip('\n')
    whole = unframe(inline[1] if (inline := _INLINE.fullmatch(text.strip())) else text)
    if is_obvious_code(whole) and not _ends_with_heading(whole):
        return UnfencedCode(code=whole)
    lines = text.split('\n')
    code: list[str] = []
    prose: list[str] = []
    position, margin = 0, ''
    while position < len(lines):
        end = _end_of_code(lines, position) if _starts_code(lines[position].strip()) else position
        part = '\n'.join(lines[position:end])
        if part and _is_code(unframe(part)):
            margin = margin if code else margin_of(part)
            code.append(unframe(part, margin))  # one margin for all: a part may be the rest of a function
        else:
            end = max(end, position + 1)
            prose += lines[position:end]
        position = end
    return UnfencedCode(code='\n\n'.join(code), prose='\n'.join(prose).strip()) if code else None


def _is_code(part: str) -> bool:
    return is_obvious_code(part) or _is_code_with_errors(part)


def _starts_code(line: str) -> bool:
    if _SIMPLE.match(line):
        return True
    return bool(_COMPOUND.match(line)) and (line.endswith(':') or statements(line) is not None)


def _end_of_code(lines: list[str], start: int) -> int:
    """The number of the next line of prose that is not inside a string."""
    quote = open_quote(lines[start], '')
    for number in range(start + 1, len(lines)):
        if not quote and _is_prose(lines[number], after_blank=not lines[number - 1].strip()):
            return number
        quote = open_quote(lines[number], quote)
    return len(lines)


def _is_prose(line: str, *, after_blank: bool) -> bool:
    if found := _SENTENCE.match(line):
        return found['first'] not in _KEYWORDS
    return after_blank and _HEADING.fullmatch(line.rstrip()) is not None


def _ends_with_heading(code: str) -> bool:
    """Whether the last line is a word such as `Done`, which parses but is not part of the code."""
    before, _, last = code.rpartition('\n')
    return _is_prose(last, after_blank=not before.rpartition('\n')[2].strip()) and last not in before


def _is_code_with_errors(code: str) -> bool:
    """Whether a text that does not parse is code: it is run, so that the model sees the error."""
    lines = [line for line in code.split('\n') if line.strip()]
    strong = sum(1 for line in lines if _STRONG_SIGN.match(line))
    likely = sum(1 for line in lines if line.startswith((' ', '\t', '#', ')', ']', '}')) or _starts_code(line.strip()))
    return statements(code) is None and strong >= 2 and likely * 3 >= len(lines) * 2
