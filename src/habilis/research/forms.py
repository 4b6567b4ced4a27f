"""Forms of a report: what it is like, and its sections where they are fixed. A form is a Markdown text.

A form with headings (`## …`) fixes the sections; the text below a heading says what the section shall have. Without
headings, the model makes the outline.
"""

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from habilis.research.contract import ResearchError

FORMS = ('report', 'blog', 'brief', 'table')
_HEADING = re.compile(r'^##\s+(.+)$', re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Heading:
    """A section that is to be written."""

    title: str
    instruction: str = ''
    goal: int = 0
    """The sub-goal that it is about; 0 for any."""


def read_form(name: str) -> str:
    """The text of a form: one of ours, or a file. Raises `ResearchError`."""
    if name in FORMS:
        return files('habilis.research').joinpath('formats', f'{name}.md').read_text(encoding='utf-8').strip()
    try:
        return Path(name).read_text(encoding='utf-8').strip()
    except (OSError, UnicodeDecodeError) as error:
        msg = f'{name} is not a form of a report: give {", ".join(FORMS)}, or a Markdown file ({error})'
        raise ResearchError(msg) from error


def fixed_headings(form: str) -> tuple[str, list[Heading]]:
    """What the form says of the whole report, and its sections."""
    whole, *parts = _HEADING.split(form)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return whole.strip(), [Heading(title=title.strip(), instruction=text.strip()) for title, text in pairs]
