"""Rich forms of a value: HTML, images and the like."""

import base64
from collections.abc import Callable
from typing import cast

from habilis.core.codec import Json

METHODS = {
    '_repr_html_': 'text/html',
    '_repr_markdown_': 'text/markdown',
    '_repr_svg_': 'image/svg+xml',
    '_repr_png_': 'image/png',
    '_repr_jpeg_': 'image/jpeg',
    '_repr_latex_': 'text/latex',
}


def displays_of(value: object) -> list[Json]:
    """Pairs of media type and text (base64 for bytes) that the value's class offers."""
    if type(value).__module__ == 'builtins':
        return []
    found: list[Json] = []
    for method, mime in METHODS.items():
        render = cast('Callable[[object], object] | None', getattr(type(value), method, None))
        if render is None:
            continue
        try:
            shown = render(value)
        except Exception:  # other forms remain, at least the text
            continue
        if isinstance(shown, bytes):
            found.append([mime, base64.b64encode(shown).decode('ascii')])
        elif isinstance(shown, str):
            found.append([mime, shown])
    return found
