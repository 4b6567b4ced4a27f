"""`@file` in a message: a short text is added to the message, a longer one is given to the code as a file."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from habilis.core.errors import HabilisError
from habilis.models.files import File, Image

MAX_SHOWN = 16_000
"""Maximum characters of a file that are added to the message."""

_IMAGES = frozenset({'.png', '.jpg', '.jpeg', '.gif', '.webp'})
_NAME = re.compile(r'(?:(?<=\s)|^)@("[^"\n]+"|\S+)')


class AttachmentError(HabilisError):
    """A file of a message cannot be read by the model or the code."""


@dataclass(frozen=True, kw_only=True)
class Attached:
    """The files that a message names."""

    text: str
    """Those that are added to the message."""

    files: Sequence[File]


def attach(message: str, *, sees_images: bool) -> Attached:
    """Read the files that a message names as `@path` or `@"path with spaces"`. Raises `AttachmentError`.

    A word after `@` that is not the name of a file stays as it is: it may be a handle or a decorator.
    """
    text, files = '', list[File]()
    for name in dict.fromkeys(match.strip('"') for match in _NAME.findall(message)):
        path = _existing(name)
        if path is None:
            continue
        content = _read(path, sees_images=sees_images)
        if isinstance(content, File):
            files.append(content)
        else:
            text += f'\n\n<file name="{path}">\n{content}\n</file>'
    return Attached(text=text, files=files)


def _existing(name: str) -> Path | None:
    for candidate in (name, name.rstrip('.,;:!?)')):
        path = Path(os.path.expanduser(candidate))
        if candidate and path.is_file():
            return path
    return None


def _read(path: Path, *, sees_images: bool) -> File | str:
    is_image = path.suffix.lower() in _IMAGES
    if is_image and not sees_images:
        msg = f'{path} is an image, which this model does not see'
        raise AttachmentError(msg)
    try:
        file = Image(path) if is_image else File(path)
    except OSError as error:
        msg = f'cannot read {path}: {error.strerror or error}'
        raise AttachmentError(msg) from None
    except ValueError as error:  # too large
        raise AttachmentError(str(error)) from None
    text = '' if is_image else _text(file.data)
    if text is None:
        msg = f'{path} is not a text file; give the code its folder with --workspace'
        raise AttachmentError(msg)
    return file if is_image or len(text) > MAX_SHOWN else text


def _text(data: bytes) -> str | None:
    """The data as text; None if it is something else."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if '\0' in text else text
