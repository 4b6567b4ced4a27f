"""Reads the entries of an untrusted zip file into memory, within limits. Nothing is unpacked to the disk."""

import stat
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from habilis.core.errors import HabilisError


@dataclass(frozen=True, kw_only=True)
class ZipLimits:
    """Limits of a zip file."""

    bytes: int
    """Of the file, and of all that is in it."""

    entry_bytes: int
    entries: int


def read_zip(
    path: Path, limits: ZipLimits, refuse: Callable[[str], HabilisError], check_name: Callable[[str], None]
) -> dict[str, bytes]:
    """The plain files of a zip file by name. Raises what `refuse` makes of a reason, and `OSError`.

    `check_name` raises for a name that is not expected.
    """
    try:
        if path.stat().st_size > limits.bytes:
            raise refuse(f'it is larger than {limits.bytes // 1_000_000} MB')
        with zipfile.ZipFile(path) as archive:
            return _read(archive, limits, refuse, check_name)
    except (HabilisError, OSError):
        raise
    except Exception as error:  # a damaged zip file brings about errors of many kinds
        raise refuse(f'it is not a readable zip file ({type(error).__name__}: {error})') from error


def _read(
    archive: zipfile.ZipFile,
    limits: ZipLimits,
    refuse: Callable[[str], HabilisError],
    check_name: Callable[[str], None],
) -> dict[str, bytes]:
    infos = archive.infolist()
    if len(infos) > limits.entries:
        raise refuse(f'it has more than {limits.entries} entries')
    entries, total = dict[str, bytes](), 0
    for info in infos:
        name, is_folder = info.filename, info.is_dir()
        check_name(name)
        if name in entries:
            raise refuse(f'{name!r} is in it twice')
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFDIR if is_folder else stat.S_IFREG):
            raise refuse(f'{name!r} is not a plain file')
        if info.flag_bits & 0x1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise refuse(f'{name!r} is encrypted, or compressed in an unusual way')
        if is_folder:
            continue
        data = b''
        if info.file_size <= limits.entry_bytes:
            with archive.open(info) as file:
                data = file.read(limits.entry_bytes + 1)  # what the entry says of its size may be a lie
        total += len(data)
        if max(info.file_size, len(data)) > limits.entry_bytes or total > limits.bytes:
            raise refuse(f'{name!r} is too large')
        entries[name] = data
    return entries
