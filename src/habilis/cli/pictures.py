"""Pictures that cells display: saved as files, and shown inside the terminals that can."""

import contextlib
import os
import stat
import time
from itertools import count
from pathlib import Path
from typing import TextIO
from urllib.parse import quote

from habilis.cli.terminal_graphics import inline_picture, protocol_of
from habilis.core.folders import data_folder
from habilis.sandbox.contract import Cell, Display

SUFFIXES = {
    'image/png': '.png',
    'image/jpeg': '.jpg',
    'image/gif': '.gif',
    'image/webp': '.webp',
    'image/svg+xml': '.svg',
}
"""Types of the displays that are pictures."""

_FILE_SUFFIXES = frozenset({*SUFFIXES.values(), '.jpeg', '.pdf'})
_NO_FOLLOW = getattr(os, 'O_NOFOLLOW', 0) | getattr(os, 'O_NONBLOCK', 0)


def run_pictures(run: str) -> Path:
    """Folder of the pictures of a run that has no workspace."""
    return data_folder() / 'pictures' / quote(run, safe='').replace('.', '%2E')


def picture_folder(workspace: str | os.PathLike[str] | None, run: str = '') -> Path:
    """Where pictures are saved: the workspace, or a folder of the run, or a new one."""
    if workspace is not None:
        return Path(workspace)
    return run_pictures(run or time.strftime('sandbox-%Y%m%d-%H%M%S'))


def is_picture(display: Display) -> bool:
    """Whether a display can be saved as a picture."""
    return display.mime in SUFFIXES


def show_pictures(cell: Cell, stream: TextIO | None, folder: Path) -> list[Path]:
    """Save the pictures that a cell displays, and show them on the stream, each with its path. Returns the paths.

    What code has saved itself is shown, but not saved again. Without a stream, pictures are only saved.
    """
    protocol = protocol_of(stream) if stream is not None else None
    pictures = [display for display in cell.displays if is_picture(display)]
    is_saved = len(pictures) <= sum(Path(file.path).suffix.lower() in _FILE_SUFFIXES for file in cell.files)
    paths: list[Path] = []
    for picture in pictures:
        if stream is not None and protocol is not None and isinstance(picture.data, bytes):
            inline = inline_picture(picture.data, protocol, stream)
            stream.write(f'{inline}\n' if inline else '')
        if is_saved:
            continue
        try:
            path = _save(picture, folder)
        except OSError as error:
            line = f'a picture could not be saved in {folder}: {error.strerror}'
        else:
            paths.append(path)
            line = f'{said_path(path)} (new, {path.stat().st_size:,} bytes)'
        if stream is not None:
            stream.write(f'{line}\n')
    if stream is not None:
        stream.flush()
    return paths


def said_path(path: Path) -> str:
    """A path for people: relative if it is below the current folder."""
    absolute = Path(os.path.abspath(path))
    here = Path.cwd()
    return str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute)


def _save(picture: Display, folder: Path) -> Path:
    """Save under the first free name. A picture that is there already is not saved again."""
    data = picture.data if isinstance(picture.data, bytes) else picture.data.encode()
    folder.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        path = folder / f'figure-{number}{SUFFIXES[picture.mime]}'
        with contextlib.suppress(FileExistsError):
            with path.open('xb') as file:  # exclusive: follows no link that code inside may have made
                file.write(data)
            return path
        if _has(path, data):
            return path
    raise AssertionError


def _has(path: Path, data: bytes) -> bool:
    """Whether a regular file has these contents."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _NO_FOLLOW)
    except OSError:
        return False
    with os.fdopen(descriptor, 'rb') as file:
        found = os.fstat(file.fileno())
        return stat.S_ISREG(found.st_mode) and found.st_size == len(data) and file.read() == data
