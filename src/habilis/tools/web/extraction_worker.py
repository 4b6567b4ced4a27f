"""Turns documents into Markdown, in a process of its own that can be killed and whose memory is limited.

Parsers can take minutes for a page that was made for it. This file is run as a script, so it imports nothing of
Habilis. For each document it reads a line of JSON, `[size, type, charset, url, whole]`, and the bytes; it answers with
a line of JSON: `{"title", "text", "date", "author", "links"}`, or `{"error"}`.
"""

import codecs
import contextlib
import importlib
import io
import json
import logging
import re
import sys
from typing import Any
from urllib.parse import urljoin

MAX_LINKS = 2000
_HIDDEN_STYLE = re.compile(
    r'display\s*:\s*none|visibility\s*:\s*hidden|(?:font-size|opacity)\s*:\s*0(?:\.0+)?(?![\d.])', re.IGNORECASE
)
_META_CHARSET = re.compile(rb'<meta[^>]{1,200}charset\s*=\s*["\']?([\w.:-]{1,40})', re.IGNORECASE)
_BOMS = ((codecs.BOM_UTF8, 'utf-8-sig'), (codecs.BOM_UTF16_LE, 'utf-16'), (codecs.BOM_UTF16_BE, 'utf-16'))


class Unreadable(Exception):
    """The document has no text for us; the message says why."""


def main() -> None:
    """Answer until the input ends."""
    documents, replies = sys.stdin.buffer, sys.stdout.buffer
    _limit_memory(int(sys.argv[1]))
    logging.disable(logging.CRITICAL)
    while line := documents.readline():
        size, kind, charset, url, whole = json.loads(line)
        data = documents.read(size)
        try:
            reply = read_document(data, kind, charset, url, whole=whole)
        except Unreadable as error:
            reply = {'error': str(error)}
        except MemoryError:
            reply = {'error': 'it needs too much memory'}
        except Exception as error:  # what parsers raise is as varied as the documents that they are given
            reply = {'error': f'it cannot be parsed ({type(error).__name__})'}
        replies.write(f'{json.dumps(reply)}\n'.encode())
        replies.flush()


def read_document(data: bytes, kind: str, charset: str, url: str, *, whole: bool) -> dict[str, object]:
    """A document of a MIME type; the type may be empty."""
    if kind == 'application/pdf' or data[:5] == b'%PDF-':
        return _read_pdf(data)
    if kind in ('', 'text/html', 'application/xhtml+xml'):
        return _read_html(decode(data, charset), url, whole=whole)
    if kind.startswith('text/') or kind.endswith(('/json', '+json', '/xml', '+xml', 'yaml', 'javascript')):
        return {'title': '', 'text': decode(data, charset), 'date': None, 'author': None, 'links': []}
    msg = f'it is {kind[:80]}, which has no text'
    raise Unreadable(msg)


def decode(data: bytes, charset: str) -> str:
    """The text. Servers are often wrong about the charset: bytes that are UTF-8 are rarely anything else."""
    for mark, codec in _BOMS:
        if data.startswith(mark):
            return data.decode(codec, 'replace')
    declared = [charset, *(found.group(1).decode('ascii') for found in [_META_CHARSET.search(data[:4096])] if found)]
    escapes = [name for name in declared if name.lower().startswith(('iso-2022', 'hz-'))]  # these look like ASCII
    for codec in (*escapes, 'utf-8', *declared):
        with contextlib.suppress(LookupError, ValueError):
            if codec:
                return data.decode(codec)
    from trafilatura.utils import decode_file

    return decode_file(data)


def _read_html(source: str, url: str, *, whole: bool) -> dict[str, object]:
    import trafilatura

    tree = _tree(source)
    about, links = trafilatura.extract_metadata(tree, default_url=url), _links(tree, url)
    text = '' if whole else trafilatura.extract(tree, output_format='markdown', include_comments=False)
    return {
        'title': about.title or '',
        'text': text or _whole_page(_tree(source)),
        'date': about.date,
        'author': about.author,
        'links': links,
    }


def _tree(source: str) -> Any:
    from trafilatura import load_html

    tree = load_html(source)
    if tree is None:  # it refuses what does not begin like a page
        tree = load_html(f'<html>{source}</html>')
    if tree is None:
        msg = 'it is empty, or not HTML'
        raise Unreadable(msg)
    _remove_hidden(tree)
    return tree


def _remove_hidden(tree: Any) -> None:
    """Remove what a reader of the page does not see, as far as the elements themselves say so."""
    for element in tree.xpath('//*[@hidden or @style]'):
        hidden = element.get('hidden') not in (None, 'until-found') or _HIDDEN_STYLE.search(element.get('style') or '')
        if hidden and element.getparent() is not None:
            element.drop_tree()


def _links(tree: Any, url: str) -> list[list[str]]:
    found: dict[str, str] = {}
    for element in tree.iter('a'):
        with contextlib.suppress(ValueError):  # not a URL
            target = urljoin(url, (element.get('href') or '').strip()).partition('#')[0]
            if target.startswith(('http://', 'https://')) and target != url:
                found.setdefault(target, ' '.join(element.text_content().split())[:300])
        if len(found) >= MAX_LINKS:
            break
    return [[text, target] for target, text in found.items()]


def _whole_page(tree: Any) -> str:
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    for element in tree.xpath('//script|//style|//noscript|//template|//head|//svg|//comment()'):
        if element.getparent() is not None:
            element.drop_tree()
    etree: Any = importlib.import_module('lxml.etree')  # it has no types
    soup = BeautifulSoup(etree.tostring(tree, encoding='unicode', method='html'), 'lxml')
    text = MarkdownConverter(heading_style='ATX').convert_soup(soup)
    return re.sub(r'\n{3,}', '\n\n', text).strip()


def _read_pdf(data: bytes) -> dict[str, object]:
    import pypdf
    from pypdf.errors import PdfReadError

    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(''):
            msg = 'it is a PDF with a password'
            raise Unreadable(msg)
        text = '\n\n'.join(page.extract_text() for page in reader.pages)
    except PdfReadError:
        msg = 'it is a damaged PDF'
        raise Unreadable(msg) from None
    about: Any = reader.metadata or {}
    made = re.match(r'D:(\d{4})(\d{2})(\d{2})', str(about.get('/CreationDate', '')))
    return {
        'title': str(about.get('/Title') or ''),
        'text': text,
        'date': '-'.join(made.groups()) if made else None,
        'author': str(about.get('/Author') or '') or None,
        'links': [],
    }


def _limit_memory(size: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # not on every system
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))


if __name__ == '__main__':
    main()
