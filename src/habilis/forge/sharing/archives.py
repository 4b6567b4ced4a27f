"""The file that tools are shared in: a zip of their folders, with the hash of every file. Its content is untrusted.

    tools.json                the hashes
    tools.json.sig            a signature of the hashes, if it is signed
    percent_of/tool.py, test_tool.py, tool.json    (tool.js and test_tool.js for JavaScript)

Nothing is unpacked to the disk: the entries are read into memory, within limits, and checked before anything is used.
"""

import functools
import hashlib
import io
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from habilis.core.errors import ForgeError
from habilis.core.zip_entries import ZipLimits, read_zip
from habilis.forge.contract import SOURCE_FILES
from habilis.forge.library.library import MANIFEST
from habilis.tools.tool_names import check_name

INDEX = 'tools.json'
SIGNATURE = f'{INDEX}.sig'
LIMITS = ZipLimits(bytes=50_000_000, entry_bytes=1_000_000, entries=3002)
_FORMAT = 1
_ENTRY = re.compile(r'(?P<name>[^\W\d]\w*)/(?P<file>(?:test_)?tool\.(?:py|js)|tool\.json)')
_SAME_TIME = (1980, 1, 1, 0, 0, 0)
"""Equal tools make equal files."""


class _Index(TypedDict):
    format: int
    files: dict[str, str]


_INDEX = TypeAdapter(_Index)
Files = Mapping[str, Mapping[str, bytes]]
"""The files of each tool."""


@dataclass(frozen=True, kw_only=True)
class Archive:
    """What is in the file."""

    tools: dict[str, dict[str, bytes]]
    """The files of each tool, with their hashes verified."""

    index: bytes
    signature: bytes
    """Of the index, not yet checked; empty if the file is not signed."""


def pack_archive(tools: Files, sign: Callable[[bytes], bytes] | None = None) -> bytes:
    """The file as bytes. `sign` makes the signature."""
    entries = {f'{name}/{file}': data for name, files in tools.items() for file, data in files.items()}
    hashes = _Index(format=_FORMAT, files={name: _hash(data) for name, data in entries.items()})
    index = _INDEX.dump_json(hashes, indent=2) + b'\n'
    head = {INDEX: index} if sign is None else {INDEX: index, SIGNATURE: sign(index)}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, 'w', zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**head, **entries}.items():
            archive.writestr(zipfile.ZipInfo(name, _SAME_TIME), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def write_archive(tools: Files, path: Path, sign: Callable[[bytes], bytes] | None = None) -> None:
    """Write the file; it appears whole or not at all. Raises `ForgeError`."""
    packed = pack_archive(tools, sign)
    try:
        descriptor, work = tempfile.mkstemp(prefix=f'.{path.name}-', dir=path.parent)
        with os.fdopen(descriptor, 'wb') as file:
            file.write(packed)
        os.replace(work, path)
    except OSError as error:
        msg = f'cannot write {path}: {error.strerror}'
        raise ForgeError(msg) from error


def read_archive(path: Path) -> Archive:
    """What is in the file. Raises `ForgeError` for anything suspicious."""

    def check(name: str) -> None:
        found = _ENTRY.fullmatch(name)
        if found is None and name not in (INDEX, SIGNATURE):
            raise _refused(path, f'unexpected entry {name!r}')
        if found is not None:
            check_name(found['name'])

    try:
        entries = read_zip(path, LIMITS, functools.partial(_refused, path), check)
    except OSError as error:
        msg = f'cannot read {path}: {error.strerror or error}'
        raise ForgeError(msg) from error
    index, signature = entries.pop(INDEX, b''), entries.pop(SIGNATURE, b'')
    return Archive(tools=_tools(path, index, entries), index=index, signature=signature)


def _tools(path: Path, data: bytes, entries: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    try:
        index = _INDEX.validate_json(data)
    except ValidationError:
        raise _refused(path, f'its {INDEX} is missing or damaged; write it with: habilis tools export') from None
    if index['format'] > _FORMAT:
        raise _refused(path, f'it was written by a newer Habilis (format {index["format"]})')
    for name in sorted({*entries, *index['files']}):
        if name not in entries or _hash(entries[name]) != index['files'].get(name):
            raise _refused(path, f'{name!r} is not what was exported (its hash differs)')
    tools: dict[str, dict[str, bytes]] = {}
    for name, data in entries.items():
        tool, _, file = name.partition('/')
        tools.setdefault(tool, {})[file] = data
    for tool, files in tools.items():
        wanted = next((both for both in SOURCE_FILES.values() if both[0] in files), SOURCE_FILES['python'])
        if wrong := sorted(files.keys() ^ {*wanted, MANIFEST}):
            raise _refused(path, f'{tool} has {"two" if wrong[0] in files else "no"} {wrong[0]}')
    return tools


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _refused(path: Path, reason: str) -> ForgeError:
    return ForgeError(f'{path} is refused: {reason}')


def texts(path: Path, files: Mapping[str, bytes], names: Sequence[str]) -> list[str]:
    """Files as text. Raises `ForgeError`."""
    try:
        return [files[name].decode('utf-8') for name in names]
    except UnicodeDecodeError as error:
        raise _refused(path, f'a file in it is not text ({error})') from error
