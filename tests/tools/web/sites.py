"""Pages of the loopback web: generated sites, and traps for whoever fetches."""

import gzip
from functools import cache

from tests.tools.web.loopback import Answer, article, endless, html, redirect

_RIVERS = {
    'kelda': ('Kelda', 412, 'Mount Arn', 'Lake Brisa'),
    'tovar': ('Tovar', 287, 'the Silt Hills', 'the Bay of Morn'),
    'ossel': ('Ossel', 655, 'the Gray Plateau', 'the Kelda'),
}
_FILLER = (
    'The valley was settled early, and every village keeps a chronicle of floods, mills and bridges. '
    'Most of these chronicles were printed in the last century; the rest can be read in the archive of the district.'
)


def generated() -> dict[str, Answer]:
    """Small sites about invented things: articles that need each other, a mirror that contradicts, a news site."""
    pages = {
        f'/rivers/{name}.html': article(
            f'The river {title}',
            f'The {title} is a river of {length} km. It rises at {source} and flows into {mouth}.',
            _FILLER,
        )
        for name, (title, length, source, mouth) in _RIVERS.items()
    }
    pages['/rivers/index.html'] = html(
        '<title>Rivers</title><ul>'
        + ''.join(f'<li><a href="{name}.html">{name}</a></li>' for name in _RIVERS)
        + '</ul>'
    )
    pages['/mirror/kelda.html'] = article(
        'The river Kelda, from an old atlas',
        'According to this atlas the Kelda is a river of 398 km, which later surveys have not confirmed.',
        _FILLER,
        date='2001-05-06',
        author='Arno Maps',
    )
    pages['/lakes/brisa.html'] = article(
        'Lake Brisa', 'Lake Brisa covers 120 square kilometres and is 45 m deep.', _FILLER, author='Tom Reed'
    )
    pages['/news/dam.html'] = article(
        'A dam for the Tovar', 'In 2024 the district voted for a dam on the Tovar; it will cost 30 million.', _FILLER
    )
    return pages


def traps() -> dict[str, Answer]:
    """Pages that are a problem for who fetches them."""
    text = 'Grüße aus Köln: ein ganz gewöhnlicher Satz, der nur dann stimmt, wenn der Zeichensatz stimmt. ' * 3
    page = f'<html><head><title>Grüße</title></head><body><article><p>{text}</p></article></body></html>'
    bomb = _gzip_bomb()
    return {
        '/moved.html': redirect('/rivers/kelda.html', 301),
        '/twice.html': redirect('/moved.html', 308),
        '/loop.html': redirect('/loop-back.html'),
        '/loop-back.html': redirect('/loop.html'),
        '/to-private.html': redirect('http://169.254.169.254/latest/meta-data/'),
        '/to-file.html': redirect('file:///secret.txt'),
        '/gone.html': Answer(status=410, body=b'gone', type='text/plain'),
        '/broken.html': Answer(status=500, body=b'oops', type='text/plain'),
        '/picture.png': Answer(body=b'\x89PNG\r\n\x1a\n' + bytes(64), type='image/png'),
        '/notes.txt': Answer(body=b'Plain text.\n<b>Not</b> markup.', type='text/plain'),
        '/large.html': Answer(chunks=lambda: (b'<p>' + b'x' * (1 << 20) for _ in range(50))),
        '/bomb.html': Answer(body=bomb, headers={'Content-Encoding': 'gzip'}),
        '/not-gzip.html': Answer(body=b'<p>plain</p>', headers={'Content-Encoding': 'gzip'}),
        '/slow.html': Answer(chunks=endless(b'<p>', 0.05)),
        '/latin1.html': Answer(body=page.encode('latin-1'), type='text/html; charset=iso-8859-1'),
        '/latin1-said-utf8.html': Answer(body=page.encode('latin-1'), type='text/html; charset=utf-8'),
        '/utf8-said-latin1.html': Answer(body=page.encode(), type='text/html; charset=iso-8859-1'),
        '/utf16.html': Answer(body=page.encode('utf-16'), type='text/html'),
        '/unknown-charset.html': Answer(body=page.encode(), type='text/html; charset=klingon'),
        '/no-type.html': Answer(body=page.encode(), type=None),
        '/deep.html': html('<div>' * 100_000 + 'bottom'),
        '/attributes.html': html(f'<p {" ".join(f"a{number}=1" for number in range(200_000))}>text'),
        '/empty.html': Answer(body=b''),
    }


@cache
def _gzip_bomb() -> bytes:
    """A few hundred kilobytes that become 300 MB."""
    return gzip.compress(bytes(300 << 20), 6)
