"""Finds the marked parts of a reply: fenced blocks, tags and thoughts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from habilis.agent.parsing.syntax import open_quote, statements, unframe

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
        (?P<mark>`{{3,}}+|~{{3,}}+)(?P<info>[^\n`]*+)$                         # a fence on its own line
    | (?<!`)(?P<late>`{{3,}}+)(?P<label>(?:python3?|py)[ \t]*+)$               # a fence after prose
    | ^[ \t]*+(?P<line>`{{3,}}+)(?P<inside>[^\n`]++)`{{3,}}+[ \t]*+$           # a fence in one line
    | (?P<tag>
        ^[ \t]*+(?:<pre>)?<(?P<first>{_CODE_TAGS}|{_CALL_TAGS}|{_THOUGHT_TAGS})(?:[ ][^<>\n]*+)?>
        | <(?P<last>{_CODE_TAGS}|{_CALL_TAGS})>[ \t]*+$
        | <(?P<any>tool_call|\|python_tag\|)>
      )
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
_LABEL = re.compile(r'\{?[.=]?([A-Za-z_][\w.+-]*)')
_THOUGHT_END = re.compile(rf'^[ \t]*</(?:{_THOUGHT_TAGS})>', re.MULTILINE | re.IGNORECASE)
_THOUGHT_START = re.compile(rf'<(?:{_THOUGHT_TAGS})>', re.IGNORECASE)
_IS_CALL = re.compile(_CALL_TAGS, re.IGNORECASE)
_IS_THOUGHT = re.compile(_THOUGHT_TAGS, re.IGNORECASE)
_AFTER_CLOSING_MARK = re.compile(r'(?:[ \t]|<[^<>\n]*>)*+$')
_FENCE_AHEAD = re.compile(r'\s*(?:`{3,}|~{3,})')
_REST_OF_LINE = re.compile(r'(?:[ \t]|</pre>)*+(?:\n|\Z)')

_CODE_LINE = re.compile(
    r'^[ \t]*(?:>>>|@\w|#|import |from \w|(?:async )?(?:def|for|while|with|if|class|try)\b|'
    r'[\w.]+\(|[\w.,\[\] ]+[-+*/]?=)',
    re.MULTILINE,
)
_MAX_SCANNED = 500

Kind = Literal['fence', 'tag', 'call', 'thought', 'typography']
"""`tag` holds code, `call` a function call. `typography` is a tag that only formats text, as in HTML."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A marked part of a reply."""

    kind: Kind
    label: str
    """The label of a fence in lower case; the name of a tag."""

    body: str
    start: int
    end: int
    is_closed: bool
    is_final: bool = True
    """Whether its end stays the same when more text follows."""

    @property
    def is_python(self) -> bool:
        """Whether it is marked as Python."""
        return self.kind == 'tag' or (self.kind == 'fence' and self.label in PYTHON_LABELS)


def find_blocks(text: str) -> Iterator[Block]:
    """The marked parts of a text in order, without overlaps. Lines of the text must end with `\\n`."""
    position = 0
    unclosed: set[str] = set()
    if thought := _unopened_thought(text):
        yield thought
        position = thought.end
    while found := _OPENING.search(text, position):
        if found['inside']:
            block = _one_line_fence(text, found)
        elif found['tag']:
            block = _tag(text, found, unclosed)
        else:
            block = _fence(text, found)
        yield block
        position = block.end


def _unopened_thought(text: str) -> Block | None:
    """A thought at the start of the text whose opening tag was part of the prompt."""
    found = _THOUGHT_END.search(text)
    if found is None or _THOUGHT_START.search(text, 0, found.start()):
        return None
    return Block(kind='thought', label='', body=text[: found.start()], start=0, end=found.end(), is_closed=True)


# Tags -----------------------------------------------------------------------------------------------------------------


def _tag(text: str, opened: re.Match[str], unclosed: set[str]) -> Block:
    """The block of a tag. `unclosed` collects tags without an end, so that each is searched for once."""
    name = opened['first'] or opened['last'] or opened['any']
    name = name if _IS_CALL.fullmatch(name) else name.lower()  # function names are case-sensitive
    begin = opened.end()
    closed = None if name in unclosed else _closing_tag(name).search(text, begin)
    if closed is None:
        unclosed.add(name)
    inner, end = (closed.start(), closed.end()) if closed else (len(text), len(text))
    kind = _tag_kind(name)
    if kind != 'thought' and _FENCE_AHEAD.match(text, begin):
        kind, end = 'typography', begin  # the fence inside it is the block
    elif kind == 'tag' and not _is_code(text, name, begin, inner, end):
        kind, end = 'typography', end if closed else begin
    body = text[begin:inner] if kind != 'typography' else ''
    if kind == 'tag' and body.lstrip().startswith('{"'):
        kind, name = 'call', 'tool_call'
    return Block(kind=kind, label=name, body=body, start=opened.start(), end=end, is_closed=closed is not None)


def _tag_kind(name: str) -> Kind:
    if _IS_THOUGHT.fullmatch(name):
        return 'thought'
    return 'call' if _IS_CALL.fullmatch(name) else 'tag'


def _closing_tag(name: str) -> re.Pattern[str]:
    if name.startswith('|'):
        return re.compile(r'<\|e[a-z]{2}_id\|>')
    return re.compile(rf'</{re.escape(name.partition("=")[0])}>', re.IGNORECASE)


def _is_code(text: str, name: str, begin: int, inner: int, end: int) -> bool:
    """Whether a tag holds code. `<code>x</code>` in a sentence or in HTML is typography."""
    body = text[begin : min(inner, begin + _MAX_SCANNED)]
    if '\n' not in body and not _REST_OF_LINE.match(text, end):
        return False
    return name != 'code' or _CODE_LINE.search(body) is not None


# Fences ---------------------------------------------------------------------------------------------------------------


def _one_line_fence(text: str, opened: re.Match[str]) -> Block:
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
        is_closed=True,
        is_final=opened.end() < len(text),
    )


def _fence(text: str, opened: re.Match[str]) -> Block:
    mark = opened['mark'] or opened['late']
    label = _label(opened['info'] or opened['label'] or '')
    quoted = (opened['lead'] or '').count('>')
    start = min(opened.end() + 1, len(text))
    end = _fence_end(text, start, mark, label, quoted)
    if not end.is_closed and not quoted:
        end = _end_after_code(text, start, mark, end)
    body = text[start : end.body]
    if quoted:
        body = re.sub(rf'^(?:[ \t]*>){{1,{quoted}}} ?', '', body, flags=re.MULTILINE)
    return Block(
        kind='fence',
        label=label,
        body=body,
        start=opened.start('late') if opened['late'] else opened.start(),
        end=end.block,
        is_closed=end.is_closed,
        is_final=end.is_final,
    )


def _label(info: str) -> str:
    """The label in lower case. `Python 3.11`, `{.python .numbers}`, `python-repl` and `main.py` give `python`."""
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
    is_closed: bool
    is_final: bool


def _fence_end(text: str, start: int, mark: str, label: str, quoted: int) -> _End:
    """The end of a fence: the first closing line that is not in a string of the code, nor closes a nested fence."""
    may_hold_strings = label == NO_LABEL or label in PYTHON_LABELS
    quote, depth, first = '', 0, None
    for begin, end in _lines(text, start):
        line = text[begin:end]
        inside = _without_margin(line, quoted)
        if _closes(inside, mark):
            here = _End(body=begin, block=min(end + 1, len(text)), is_closed=True, is_final=end < len(text))
            if not quote and not depth:
                return here
            depth = max(0, depth - 1)
            first = first or here
        elif not quote and _opens(inside, mark):
            if label in ('markdown', 'md'):
                depth += 1
            else:  # the next block starts, so this one was not closed
                return _End(body=begin, block=begin, is_closed=False, is_final=True)
        if may_hold_strings:
            quote = open_quote(inside, quote)
    if first is not None:
        return _End(body=first.body, block=first.block, is_closed=True, is_final=False)
    return _End(body=len(text), block=len(text), is_closed=False, is_final=False)


def _lines(text: str, start: int) -> Iterator[tuple[int, int]]:
    while start < len(text):
        end = text.find('\n', start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1


def _without_margin(line: str, quoted: int) -> str:
    return line.lstrip(' \t>') if quoted else line.lstrip(' \t')


def _closes(line: str, mark: str) -> bool:
    rest = line.lstrip(mark[0])
    return len(line) - len(rest) >= len(mark) and _AFTER_CLOSING_MARK.match(rest) is not None


def _opens(line: str, mark: str) -> bool:
    return line.startswith(mark) and _label(line.lstrip(mark[0])) != NO_LABEL and '`' not in line.lstrip(mark[0])


def _end_after_code(text: str, start: int, mark: str, end: _End) -> _End:
    """The end of a fence without a closing line: a mark after the code on its last line, or the start of a mark."""
    last = text.rfind('\n', start, end.body)
    if last >= 0 and text[last + 1 : end.body].strip() in (mark[0], mark[0] * 2):
        return replace(end, body=last + 1)
    found = re.compile(rf'(?<!{mark[0]}){mark}[ \t]*$', re.MULTILINE).search(text, start, end.body)
    if found is None or statements(unframe(text[start : found.start()])) is None:
        return end
    return _End(body=found.start(), block=found.end(), is_closed=True, is_final=False)
