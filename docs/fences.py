"""For mkdocs: a fence marked `python model` (or `console model`) is shown as `python`. The mark is for the tests."""

import re

_MARKED = re.compile(r'^( *(?:`{3,}|~{3,}) *\w+) model[ \t]*$', re.MULTILINE)


def on_page_markdown(markdown: str, **_: object) -> str:
    """Called by mkdocs with the text of each page."""
    return _MARKED.sub(r'\1', markdown)
