"""The replies of `corpus/`, read."""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / 'corpus'
FORMS = frozenset({'fence', 'tag', 'json', 'bare', 'none', 'calls'})


@dataclass(frozen=True, kw_only=True)
class Example:
    """A reply and what is in it."""

    name: str
    reply: str
    form: str
    truncated: bool
    expected: str


def read_example(path: Path) -> Example:
    """One file."""
    lines = path.read_text(encoding='utf-8').split('\n')
    [mark] = [number for number, line in enumerate(lines) if line.startswith('%%% ')]
    form, *flags = lines[mark].split()[1:]
    assert form in FORMS, path.name
    assert set(flags) <= {'truncated', 'crlf'}, path.name
    newline = '\r\n' if 'crlf' in flags else '\n'
    return Example(
        name=path.stem,
        reply=newline.join(lines[:mark]),
        form=form,
        truncated='truncated' in flags,
        expected='\n'.join(lines[mark + 1 :]).rstrip('\n'),
    )


EXAMPLES = [read_example(path) for path in sorted(FOLDER.glob('*.txt'))]
