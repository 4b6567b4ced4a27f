"""Untrusted text, code, values and displays as safe HTML for notebooks.

All text is escaped. Markdown has no raw HTML, no images (their URLs could leak data) and no links but to web and mail
addresses. HTML made in the sandbox goes into a frame without scripts and without network.
"""

import base64
import dataclasses
import pprint
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any, cast

from habilis.agent.hooks.sanitize import escape_controls
from habilis.core.narrowing import is_dict, is_list, is_tuple
from habilis.core.previews import shorten
from habilis.sandbox.contract import Cell, Display

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MAX_TEXT = 20_000
MAX_ROWS = 100
MAX_COLUMNS = 20
MAX_CELL = 200
"""Maximum characters of a value in a table."""

CODE_STYLE = 'white-space:pre-wrap;overflow-wrap:anywhere;margin:0.3em 0;font-family:monospace'
_SOURCE_STYLE = f'{CODE_STYLE};border-left:3px solid #4a90d9;padding-left:0.6em'
_PYTHON = frozenset({'python', 'py', 'python3', 'ipython'})
_ERROR_STYLE = ' style="border: 1px solid #F00"'
_IMAGES = frozenset({'image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/svg+xml'})
_SAFE_LINK = re.compile(r'(?:https?://|mailto:)\S+', re.IGNORECASE)

# A page made in the sandbox runs no scripts and loads nothing: a URL could leak data.
_CONTENT_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_SHOWN = 'Shown by the code'
_ROW_HEIGHT, _MAX_HEIGHT = 28, 480
"""Pixels. A frame without scripts cannot fit its own height to its content."""


def block(text: str, style: str = '') -> str:
    """Text as it is, escaped."""
    ellipsis = '…' if len(text) > MAX_TEXT else ''
    return f'<div style="{style}">{escape(escape_controls(text[:MAX_TEXT]))}{ellipsis}</div>'


def code_block(code: str, style: str = _SOURCE_STYLE) -> str:
    """Highlighted Python."""
    from pygments import highlight  # pyright: ignore[reportUnknownVariableType]
    from pygments.formatters import HtmlFormatter  # pyright: ignore[reportUnknownVariableType]
    from pygments.lexers import PythonLexer  # pyright: ignore[reportUnknownVariableType]

    ellipsis = '…' if len(code) > MAX_TEXT else ''
    formatter = cast('Any', HtmlFormatter)(noclasses=True, nowrap=True, nobackground=True)
    lexer = cast('Any', PythonLexer)(stripnl=False, ensurenl=False)
    page = cast('str', cast('Any', highlight)(escape_controls(code[:MAX_TEXT]), lexer, formatter))
    return f'<div style="{style}">{page.replace(_ERROR_STYLE, "")}{ellipsis}</div>'


def markdown_block(text: str, style: str = '') -> str:
    """Markdown as a page shows it."""
    ellipsis = '…' if len(text) > MAX_TEXT else ''
    return f'<div style="{style}">{_markdown().render(escape_controls(text[:MAX_TEXT]))}{ellipsis}</div>'


@cache
def _markdown() -> 'MarkdownIt':
    from markdown_it import MarkdownIt

    reader = MarkdownIt('commonmark', {'html': False}).enable(['table', 'strikethrough'])
    reader.validateLink = lambda url: _SAFE_LINK.fullmatch(url) is not None
    for name, rule in (('image', _image), ('link_open', _link_opening), ('fence', _fence), ('code_block', _fence)):
        reader.add_render_rule(name, rule)
    return reader


def _image(_renderer: object, tokens: Sequence[Any], index: int, _options: object, _env: object) -> str:
    """An image as words: loading it would tell its server that the text was read."""
    return escape(f'[image: {tokens[index].content}]({tokens[index].attrs.get("src", "")})')


def _link_opening(_renderer: object, tokens: Sequence[Any], index: int, _options: object, _env: object) -> str:
    address = escape(str(tokens[index].attrs.get('href', '')))
    return f'<a href="{address}" title="{address}" target="_blank" rel="noopener noreferrer">'


def _fence(_renderer: object, tokens: Sequence[Any], index: int, _options: object, _env: object) -> str:
    language = str(tokens[index].info).strip().lower()
    return (code_block if language in _PYTHON else block)(tokens[index].content, _SOURCE_STYLE)


# Values ---------------------------------------------------------------------------------------------------------------


def value_block(value: object) -> str:
    """A value for people: text as Markdown, records as a table, everything else as highlighted Python."""
    if isinstance(value, str):
        return markdown_block(value)
    record = _record(value)
    if record:
        return table((), [(str(name), item) for name, item in record.items()])
    items = value if is_list(value) or is_tuple(value) else ()
    rows = [_record(item) for item in items[:MAX_ROWS]]
    if not rows or not all(rows):
        return code_block(_formatted(value), CODE_STYLE)
    columns = list(dict.fromkeys(name for row in rows for name in row))[:MAX_COLUMNS]
    more = block(f'… {len(items) - len(rows):,} more rows') if len(items) > len(rows) else ''
    return table([*map(str, columns)], ([row.get(column, '') for column in columns] for row in rows)) + more


def _record(value: object) -> Mapping[object, object]:
    """The fields of a dict, a dataclass or a pydantic model; empty for all else."""
    from pydantic import BaseModel

    if isinstance(value, BaseModel):
        return {**dict(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    return value if is_dict(value) and len(value) <= MAX_ROWS else {}


def _formatted(value: object) -> str:
    short = shorten(value, MAX_TEXT)
    try:
        return short if len(short) < MAX_CELL else pprint.pformat(value, width=100, sort_dicts=False)
    except Exception:  # a `__repr__` may do anything, and Python refuses to print very long integers
        return short


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of escaped values, with a head if there are columns."""
    head = ''.join(f'<th>{_cell(column)}</th>' for column in columns)
    body = ''.join(f'<tr>{"".join(f"<td>{_cell(item)}</td>" for item in row)}</tr>' for row in rows)
    return f'<table>{f"<thead><tr>{head}</tr></thead>" if head else ""}<tbody>{body}</tbody></table>'


def _cell(value: object) -> str:
    text = value if isinstance(value, str) else shorten(value, MAX_CELL)
    return escape(escape_controls(text[:MAX_CELL] + ('…' if len(text) > MAX_CELL else '')))


# Displays -------------------------------------------------------------------------------------------------------------


def display_block(display: Display) -> str:
    """Images as images, HTML in a sandboxed frame, everything else as text."""
    mime, data = display.mime, display.data
    if mime in _IMAGES:
        encoded = base64.b64encode(data.encode('utf-8', 'replace') if isinstance(data, str) else data).decode('ascii')
        return f'<img src="data:{mime};base64,{encoded}" style="max-width:100%" alt="{_SHOWN}">'
    text = data if isinstance(data, str) else f'({mime}, {len(data):,} bytes)'
    if mime == 'text/markdown' and isinstance(data, str):
        return markdown_block(text)
    if mime != 'text/html':
        return block(text, CODE_STYLE)
    page = f'<meta http-equiv="Content-Security-Policy" content="{_CONTENT_POLICY}">{text[:MAX_TEXT]}'
    height = min(_MAX_HEIGHT, _ROW_HEIGHT * (2 + max(text.count('<tr'), text.count('\n'), text.count('<br'))))
    style = f'width:100%;height:{height}px;border:0'
    return f'<iframe sandbox="" srcdoc="{escape(page)}" style="{style}" title="{_SHOWN}"></iframe>'


def page(blocks: Iterable[str]) -> str:
    """Blocks of safe HTML, one below the other."""
    return f'<div class="habilis">{"".join(blocks)}</div>'


def folded(title: str, blocks: Iterable[str]) -> str:
    """Blocks that are shown on a click."""
    return f'<details><summary>{escape(escape_controls(title))}</summary>{"".join(blocks)}</details>'


def cell_text(cell: Cell) -> Iterator[str]:
    """What a cell printed, its value, and its error; not its displays."""
    if cell.stdout.strip():
        yield block(cell.stdout.strip('\n'), CODE_STYLE)
    if cell.text is not None and not cell.displays:
        yield block(cell.text, CODE_STYLE)
    if cell.error is not None:
        yield block(cell.error.traceback.strip() or str(cell.error), f'{CODE_STYLE};color:#c00')
