"""Code that a model wrote with no fence and no tag, alone or among prose."""

import keyword
import re
from dataclasses import dataclass

from habilis.agent.parsing.syntax import acts, clean, open_quote, statements

_SIMPLE = re.compile(
    r'import \w|from [\w.]+ import |(?:async )?def \w+\(|@\w|>>> |[\w.]+\(|'
    r'\w+(?:, ?\w+)* ?[-+*/]?= ?[^\s=]|\w+: ?[\w\[\], ]+ = '
)
_COMPOUND = re.compile(r'(?:async )?(?:for|while|with|if|try|class|def)\b')
_STRONG = re.compile(r'\s*(?:import \w|from [\w.]+ import |(?:async )?def \w+\(|for \w.* in |print\(|final_answer\()')
_SENTENCE = re.compile(r'(?:[-*#>]+ |\d+[.)] |\*\*)?(?P<first>[^\W\d_][\w\'’-]*)[,:;]?(?: +[^\s=(\[{]+){2}')
_HEADING = re.compile(r'(?:[-*#>]+ |\*\*)?[A-Z][\w\'’-]*(?: [\w\'’-]+)*(?:[.:!?]|[.:]?\*\*)?')
_INLINE = re.compile(r'`([^`\n]+)`')
_KEYWORDS = frozenset(keyword.kwlist) | {'match', 'case', 'type'}


@dataclass(frozen=True, kw_only=True)
class BareCode:
    """Code and what was around it."""

    code: str
    prose: str = ''


def find_bare_code(text: str) -> BareCode | None:
    """The code of a text without marks; None if it is prose, or too little to tell."""
    text = text.strip('\n')
    whole = clean(inline[1] if (inline := _INLINE.fullmatch(text.strip())) else text)
    if acts(whole) and not _has_heading(whole):
        return BareCode(code=whole)
    lines = text.split('\n')
    code: list[str] = []
    prose: list[str] = []
    position = 0
    while position < len(lines):
        end = _end(lines, position) if _starts(lines[position].strip()) else position
        part = clean('\n'.join(lines[position:end]))
        if part and (acts(part) or _tries_to_act(part)):
            code.append(part)
        else:
            end = max(end, position + 1)
            prose += lines[position:end]
        position = end
    return BareCode(code='\n\n'.join(code), prose='\n'.join(prose).strip()) if code else None


def _starts(line: str) -> bool:
    if _SIMPLE.match(line):
        return True
    return bool(_COMPOUND.match(line)) and (line.endswith(':') or statements(line) is not None)


def _end(lines: list[str], start: int) -> int:
    """Code goes on to the next line of prose that is not inside a string."""
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


def _has_heading(code: str) -> bool:
    """A last word such as `Done` parses, but is none of the code."""
    before, _, last = code.rpartition('\n')
    return _is_prose(last, after_blank=not before.rpartition('\n')[2].strip()) and last not in before


def _tries_to_act(code: str) -> bool:
    """Code with a mistake in it is still code: the model is told of the mistake. A sentence is not."""
    lines = [line for line in code.split('\n') if line.strip()]
    strong = sum(1 for line in lines if _STRONG.match(line))
    likely = sum(1 for line in lines if line.startswith((' ', '\t', '#', ')', ']', '}')) or _starts(line.strip()))
    return statements(code) is None and strong >= 2 and likely * 3 >= len(lines) * 2
