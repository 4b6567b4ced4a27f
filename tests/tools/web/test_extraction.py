"""Extraction: the text that `trafilatura` itself finds, so that what is measured of it holds here."""

import itertools
from pathlib import Path

import trafilatura

from habilis.tools.web.extraction import Extraction
from tests.tools.web import sites

DOCUMENTATION = Path('/usr/share/doc')
"""Where Debian has pages that nobody wrote for this test; not on every machine."""


def documents() -> dict[str, bytes]:
    """Generated articles, and up to 20 pages of the documentation of this machine."""
    found = itertools.islice(DOCUMENTATION.rglob('*.html'), 200)
    real = [path for path in found if path.is_file() and 2000 < path.stat().st_size < 200_000][:20]
    made = {path: answer.body for path, answer in sites.generated().items() if 'index' not in path}
    return made | {path.name: path.read_bytes() for path in real}


async def test_the_text_of_a_page_is_what_trafilatura_finds() -> None:
    extraction, compared = Extraction(), 0
    for name, data in documents().items():
        expected = trafilatura.extract(data, output_format='markdown', include_comments=False)
        if expected and not any(word in data for word in (b'style=', b'hidden')):
            found = await extraction.extract(
                data, kind='text/html', charset='', url=f'http://x.example/{name}', whole=False
            )
            assert found.text.strip() == expected.strip(), name
            compared += 1
    extraction.close()
    assert compared >= 5
