"""The marked parts of a reply, in the order they were written: fences, tags, and what a model only thought."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from habilis.agent.parsing.syntax import clean, open_quote, statements

PYTHON_LABELS = frozenset(
    'python py python3 python2 py3 ipython ipython3 pycon repl tool_code code execute exec pyodide sandbox'.split()
)
NO_LABEL = ''

_CODE_TAGS = r'code|python|py|execute|tool_code|execute_i?python|run_python|parameter=(?:code|python|source|script)'
_CALL_TAGS = r'tool_call|function_call|function=[\w.-]+'
_THOUGHT_TAGS = r'think|thinking|thought|thoughts|reasoning|scratchpad'
_OPENING = re.compile(
    rf"""
    ^(?P<lead>[ \t>]*+(?:(?:[-*+]|\d{{1,3}}[.)])[ \t]+)?)
        (?P<mark>`{{3,}}+|~{{3,}}+)(?P<info>[^\n`]*+)$                         # a fence on a line of its own
    | (?<!`)(?P<late>`{{3,}}+)(?P<label>(?:python3?|py)[ \t]*+)$               # a fence after words
    | ^[ \t]*+(?P<line>`{{3,}}+)(?P<inside>[^\n`]++)`{{3,}}+[ \t]*+$           # a fence of one line
    | (?P<tag>
        ^[ \t]*+(?:<pre>)?<(?P<first>{_CODE_TAGS}|{_CALL_TAGS}|{_THOUGHT_TAGS})(?:[ ][^<>\n]*+)?>
        | <(?P<last>{_CODE_TAGS}|{_CALL_TAGS})>[ \t]*+$
        | <(?P<any>tool_call|\|python_tag\|)>
      )
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
_LABEL = re.compile(r'\{?[.=]?([A-Za-z_][\w.+-]*)')
_ORPHAN = re.compile(rf'^[ \t]*</(?:{_THOUGHT_TAGS})>', re.MULTILINE | re.IGNORECASE)
_THOUGHT = re.compile(rf'<(?:{_THOUGHT_TAGS})>', re.IGNORECASE)
_IS_CALL = re.compile(_CALL_TAGS, re.IGNORECASE)
_IS_THOUGHT = re.compile(_THOUGHT_TAGS, re.IGNORECASE)
_AFTER_CLOSE = re.compile(r'(?:[ \t]|<[^<>\n]*>)*+$')
_FENCE_AHEAD = re.compile(r'\s*(?:`{3,}|~{3,})')
_REST_OF_LINE = re.compile(r'(?:[ \t]|</pre>)*+(?:\n|\Z)')

_CODE_LINE = re.compile(
    r'^[ \t]*(?:>>>|@\w|#|import |from \w|(?:async )?(?:def|for|while|with|if|class|try)\b|'
    r'[\w.]+\(|[\w.,\[\] ]+[-+*/]?=)',
    re.MULTILINE,
)
_LOOKED_AT = 500

Kind = Literal['fence', 'tag', 'call', 'thought', 'plain']
"""`plain` is what looks like a tag for code but is typography."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A marked part."""

    kind: Kind
    label: str
    """What a fence says it is, in small letters; the name of a tag."""

    body: str
    start: int
    end: int
    closed: bool
    certain: bool = True
    """Whether more text cannot change where it ends."""

    @property
    def python(self) -> bool:
        """Whether it is marked as Python."""
        return self.kind == 'tag' or (self.kind == 'fence' and self.label in PYTHON_LABELS)


def find_blocks(text: str) -> Iterator[Block]:
    """The marked parts of a text that has no `\\r\\n`. They do not overlap."""
    position = 0
    unclosed: set[str] = set()
    if orphan := _orphan(text):
        yield orphan
        position = orphan.end
    while found := _OPENING.search(text, position):
        if found['inside']:
            block = _one_line(text, found)
        elif found['tag']:
            block = _tag(text, found, unclosed)
        else:
            block = _fence(text, found)
        yield block
        position = block.end


def _orphan(text: str) -> Block | None:
    """A thought whose opening tag was part of the prompt: everything up to its end."""
    found = _ORPHAN.search(text)
    if found is None or _THOUGHT.search(text, 0, found.start()):
        return None
    return Block(kind='thought', label='', body=text[: found.start()], start=0, end=found.end(), closed=True)


# Tags -----------------------------------------------------------------------------------------------------------------


def _tag(text: str, opened: re.Match[str], unclosed: set[str]) -> Block:
    """`unclosed` are the tags known to have no end, so that it is looked for only once."""
    name = opened['first'] or opened['last'] or opened['any']
    name = name if _IS_CALL.fullmatch(name) else name.lower()  # the name of a function stays as it is
    begin = opened.end()
    closed = None if name in unclosed else _closing_tag(name).search(text, begin)
    if closed is None:
        unclosed.add(name)
    inner, end = (closed.start(), closed.end()) if closed else (len(text), len(text))
    kind = _tag_kind(name)
    if kind != 'thought' and _FENCE_AHEAD.match(text, begin):
        kind, end = 'plain', begin  # the fence says it all
    elif kind == 'tag' and not _is_code(text, name, begin, inner, end):
        kind, end = 'plain', end if closed else begin
    body = text[begin:inner] if kind != 'plain' else ''
    if kind == 'tag' and body.lstrip().startswith('{"'):
        kind, name = 'call', 'tool_call'
    return Block(kind=kind, label=name, body=body, start=opened.start(), end=end, closed=closed is not None)


def _tag_kind(name: str) -> Kind:
    if _IS_THOUGHT.fullmatch(name):
        return 'thought'
    return 'call' if _IS_CALL.fullmatch(name) else 'tag'


def _closing_tag(name: str) -> re.Pattern[str]:
    if name.startswith('|'):
        return re.compile(r'<\|e[a-z]{2}_id\|>')
    return re.compile(rf'</{re.escape(name.partition("=")[0])}>', re.IGNORECASE)


def _is_code(text: str, name: str, begin: int, inner: int, end: int) -> bool:
    """`<code>x</code>` in a sentence is typography, and HTML has `<code>` too."""
    body = text[begin : min(inner, begin + _LOOKED_AT)]
    if '\n' not in body and not _REST_OF_LINE.match(text, end):
        return False
    return name != 'code' or _CODE_LINE.search(body) is not None


# Fences ---------------------------------------------------------------------------------------------------------------


def _one_line(text: str, opened: re.Match[str]) -> Block:
    label, _, body = opened['inside'].strip().partition(' ')
    if label.lower() not in PYTHON_LABELS:
        label, body = NO_LABEL, opened['inside']
    end = min(opened.end() + 1, len(text))
    return Block(
        kind='fence',
        label=label.lower(),
        body=body,
        start=opened.start(),
        end=end,
        closed=True,
        certain=opened.end() < len(text),
    )


def _fence(text: str, opened: re.Match[str]) -> Block:
    mark = opened['mark'] or opened['late']
    label = _label(opened['info'] or opened['label'] or '')
    quoted = (opened['lead'] or '').count('>')
    start = min(opened.end() + 1, len(text))
    end = _fence_end(text, start, mark, label, quoted)
    if not end.closed and not quoted:
        end = _end_behind_code(text, start, mark, end)
    body = text[start : end.body]
    if quoted:
        body = re.sub(rf'^(?:[ \t]*>){{1,{quoted}}} ?', '', body, flags=re.MULTILINE)
    return Block(
        kind='fence',
        label=label,
        body=body,
        start=opened.start('late') if opened['late'] else opened.start(),
        end=end.block,
        closed=end.closed,
        certain=end.certain,
    )


def _label(info: str) -> str:
    """`python` also for `Python 3.11`, `{.python .numbers}`, `python-repl`, `python:main.py` and `main.py`."""
    found = _LABEL.match(info.strip())
    if found is None:
        return NO_LABEL
    label = found[1].lower()
    if label.endswith('.py'):
        return 'python'
    base = re.split(r'[.-]', label)[0]
    return base if base in PYTHON_LABELS else label


@dataclass(frozen=True, kw_only=True)
class _End:
    body: int
    block: int
    closed: bool
    certain: bool


def _fence_end(text: str, start: int, mark: str, label: str, quoted: int) -> _End:
    """The line that closes a fence: the first that is not inside a string of the code, nor closes a fence inside."""
    may_hold_strings = label == NO_LABEL or label in PYTHON_LABELS
    quote, depth, first = '', 0, None
    for begin, end in _lines(text, start):
        line = text[begin:end]
        inside = _inside(line, quoted)
        if _closes(inside, mark):
            here = _End(body=begin, block=min(end + 1, len(text)), closed=True, certain=end < len(text))
            if not quote and not depth:
                return here
            depth = max(0, depth - 1)
            first = first or here
        elif not quote and _opens(inside, mark):
            if label in ('markdown', 'md'):
                depth += 1
            else:  # the next block: this one was not closed
                return _End(body=begin, block=begin, closed=False, certain=True)
        if may_hold_strings:
            quote = open_quote(inside, quote)
    if first is not None:
        return _End(body=first.body, block=first.block, closed=True, certain=False)
    return _End(body=len(text), block=len(text), closed=False, certain=False)


def _lines(text: str, start: int) -> Iterator[tuple[int, int]]:
    while start < len(text):
        end = text.find('\n', start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1


def _inside(line: str, quoted: int) -> str:
    return line.lstrip(' \t>') if quoted else line.lstrip(' \t')


def _closes(line: str, mark: str) -> bool:
    rest = line.lstrip(mark[0])
    return len(line) - len(rest) >= len(mark) and _AFTER_CLOSE.match(rest) is not None


def _opens(line: str, mark: str) -> bool:
    return line.startswith(mark) and _label(line.lstrip(mark[0])) != NO_LABEL and '`' not in line.lstrip(mark[0])


def _end_behind_code(text: str, start: int, mark: str, end: _End) -> _End:
    """Of a fence that no line closes: a mark behind the last line of the code, or the first signs of one."""
    last = text.rfind('\n', start, end.body)
    if last >= 0 and text[last + 1 : end.body].strip() in (mark[0], mark[0] * 2):
        return replace(end, body=last + 1)
    found = re.compile(rf'(?<!{mark[0]}){mark}[ \t]*$', re.MULTILINE).search(text, start, end.body)
    if found is None or statements(clean(text[start : found.start()])) is None:
        return end
    return _End(body=found.start(), block=found.end(), closed=True, certain=False)
