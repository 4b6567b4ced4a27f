"""`@path` in a message: a file goes to the code in `/inputs`, an image to a model that sees it; a folder is listed."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePath

from habilis.core.errors import HabilisError
from habilis.core.previews import format_size
from habilis.core.similar_names import similar_names
from habilis.models.files import File, Image

MAX_LISTED = 100
MAX_SCANNED = 1000
"""Entries of a folder that are listed, and those of which they are the first by name."""

_IMAGES = frozenset({'.png', '.jpg', '.jpeg', '.gif', '.webp'})
_NAME = re.compile(r'(?:(?<=\s)|^)@("[^"\n]+"|\S+)')
_DECORATED = re.compile(r'[^\n]*\n\s*(?:@|def\s|class\s|async\s+def\s)')
"""The rest of the line of a decorator, and the start of the line below it."""

_ENDINGS = frozenset(
    '.csv .tsv .json .jsonl .ndjson .parquet .arrow .feather .xls .xlsx .ods .db .sqlite .sql .zip .tar .gz .npy .npz '
    '.txt .md .rst .log .pdf .doc .docx .tex .html .htm .xml .yaml .yml .toml .ini .cfg .png .jpg .jpeg .gif .webp '
    '.svg .py .ipynb .js .ts .css .c .h .cpp .rs .go .java .sh'.split()
)
"""Endings that are those of files, and of neither hosts (`@example.org`) nor attributes (`@app.route`)."""


class AttachmentError(HabilisError):
    """A message names a file that does not exist or cannot be read."""


@dataclass(frozen=True, kw_only=True)
class Attached:
    """What a message names."""

    files: Sequence[File] = ()
    text: str = ''
    """The listed folders."""

    unseen: Sequence[str] = ()
    """Names of the images that the model does not see; code can open them."""


def attach(message: str, *, folder: str = '.', sees_images: bool) -> Attached:
    """Read what a message names as `@path` or `@"path with spaces"`, from a folder on. Raises `AttachmentError`.

    Handles, addresses and decorators stay as they are: a name that does not exist is an error only if it must be that
    of a file, by its quotes, its folder or its ending.
    """
    text, files = '', list[File]()
    for path in dict.fromkeys(_paths(message, Path(folder))):
        if path.is_dir():
            text += f'\n\n<folder name="{path.name}">\n{_list(path)}\n</folder>'
        else:
            files.append(_read(path, sees_images=sees_images))
    unseen = [] if sees_images else [file.name for file in files if PurePath(file.name).suffix.lower() in _IMAGES]
    return Attached(files=files, text=text, unseen=unseen)


def _paths(message: str, folder: Path) -> Iterator[Path]:
    for match in _NAME.finditer(message):
        if _DECORATED.match(message, match.end()) and not message[: match.start()].rpartition('\n')[2].strip():
            continue
        quoted = match[1].startswith('"')
        names = [match[1].strip('"')] if quoted else [match[1], match[1].rstrip('.,;:!?)\'"')]
        found = next((path for name in names if name and (path := _place(folder, name)).exists()), None)
        if found is not None:
            yield found
        elif quoted or _is_path(names[-1], folder):
            raise _missing(names[-1], folder)


def _place(folder: Path, name: str) -> Path:
    return folder / os.path.expanduser(name)


def _is_path(name: str, folder: Path) -> bool:
    """Whether something that does not exist is meant as a path."""
    if '(' in name:
        return False
    parent, slash, _ = name.rpartition('/')
    has_place = name.startswith(('/', './', '../', '~/')) or bool(slash and _place(folder, parent).is_dir())
    return has_place or PurePath(name).suffix.lower() in _ENDINGS


def _missing(name: str, folder: Path) -> AttachmentError:
    path = _place(folder, name)
    near = similar_names(path.name, [entry.name for entry in _entries(path.parent)], n=1)
    advice = f'did you mean @{PurePath(name).with_name(near[0])}?' if near else 'check the name; Tab completes it'
    return AttachmentError(f'there is no file {name}: {advice}')


def _read(path: Path, *, sees_images: bool) -> File:
    kind = Image if sees_images and path.suffix.lower() in _IMAGES else File
    try:
        return kind(path)
    except OSError as error:
        msg = f'cannot read {path}: {error.strerror or error}'
        raise AttachmentError(msg) from None
    except ValueError as error:  # too large, or no image
        raise AttachmentError(str(error)) from None


def _entries(folder: Path) -> 'list[os.DirEntry[str]]':
    try:
        with os.scandir(folder) as entries:
            return sorted(islice(entries, MAX_SCANNED), key=lambda entry: entry.name)
    except OSError:
        return []


def _list(folder: Path) -> str:
    entries = [entry for entry in _entries(folder) if not entry.name.startswith('.')]
    more = len(entries) - MAX_LISTED
    lines = [_line(entry) for entry in entries[:MAX_LISTED]]
    return '\n'.join([*lines, *([f'and {more} more'] if more > 0 else [])])


def _line(entry: 'os.DirEntry[str]') -> str:
    try:
        is_folder = entry.is_dir()
        return f'{entry.name}/' if is_folder else f'{entry.name} ({format_size(entry.stat().st_size)})'
    except OSError:
        return entry.name
