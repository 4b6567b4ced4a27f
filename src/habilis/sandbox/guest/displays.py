"""Rich forms of a value: HTML, images and the like; and the figures of matplotlib."""

import base64
import io
import sys
import weakref
from collections.abc import Callable
from typing import Any

from habilis.core.codec import Json

METHODS = {
    '_repr_html_': 'text/html',
    '_repr_markdown_': 'text/markdown',
    '_repr_svg_': 'image/svg+xml',
    '_repr_png_': 'image/png',
    '_repr_jpeg_': 'image/jpeg',
    '_repr_latex_': 'text/latex',
}


_shown: 'weakref.WeakSet[object]' = weakref.WeakSet()
"""Figures that were displayed as they are now."""

_pictures: 'weakref.WeakKeyDictionary[object, list[Json]]' = weakref.WeakKeyDictionary()
"""What was displayed of a figure last: to save it to a file changes it for a moment only."""


def displays_of(value: object) -> list[Json]:
    """Pairs of media type and text (base64 for bytes) that the value's class offers."""
    if type(value).__module__ == 'builtins':
        return []
    if type(value).__module__ == 'matplotlib.figure':
        return _render(value)
    found: list[Json] = []
    for method, mime in METHODS.items():
        render: Callable[[object], object] | None = getattr(type(value), method, None)
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


def new_figures() -> list[Json]:
    """The open figures of matplotlib that are new, or have changed since they were displayed."""
    pyplot: Any = sys.modules.get('matplotlib.pyplot')
    if pyplot is None:
        return []
    found: list[Json] = []
    try:
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            if figure.axes and figure not in _shown:
                before = _pictures.get(figure)
                picture = _render(figure)
                found += picture if picture != before else []
    except Exception:  # code inside may have replaced any of these functions
        return found
    return found


def keep_figures() -> None:
    """Take the open figures as displayed: those of a state that was loaded were, where it was saved."""
    pyplot: Any = sys.modules.get('matplotlib.pyplot')
    if pyplot is not None:
        for number in pyplot.get_fignums():
            _keep(pyplot.figure(number))


def _render(figure: Any) -> list[Json]:
    try:
        buffer = io.BytesIO()
        figure.savefig(buffer, format='png', bbox_inches='tight')
        _keep(figure)
    except Exception:  # a figure that cannot be drawn is shown as text only
        return []
    _pictures[figure] = [['image/png', base64.b64encode(buffer.getvalue()).decode('ascii')]]
    return _pictures[figure]


def _keep(figure: Any) -> None:
    figure.stale_callback = _forget
    _shown.add(figure)


def _forget(figure: object, is_stale: bool) -> None:
    """Called by matplotlib when a figure changes."""
    _shown.discard(figure)
