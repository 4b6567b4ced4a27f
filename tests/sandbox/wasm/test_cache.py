"""The cache: made once, whoever asks; made again when it is damaged; never half."""

import errno
import os
import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from habilis.core.errors import SandboxError
from habilis.sandbox.wasm import build
from habilis.sandbox.wasm.cache import KEEP, CacheEntry, compiled_component, find_compiled

DATA = b'machine code' * 1000


class Maker:
    """Makes the data, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> bytes:
        self.calls += 1
        return DATA


def names(folder: Path) -> set[str]:
    """What is in the folder, but for locks."""
    return {path.name for path in folder.iterdir() if path.suffix != '.lock'}


@pytest.fixture
def entry(tmp_path: Path) -> CacheEntry:
    return CacheEntry(tmp_path / 'entry.bin')


# One process ----------------------------------------------------------------------------------------------------------


def test_an_entry_is_made_once(entry: CacheEntry) -> None:
    make = Maker()
    assert not entry.is_good()
    for _ in range(3):
        assert entry.get(make).read_bytes() == DATA
    assert make.calls == 1
    assert names(entry.path.parent) == {'entry.bin', 'entry.bin.crc32'}


DAMAGE: dict[str, Callable[[CacheEntry], object]] = {
    'a flipped bit': lambda entry: entry.path.write_bytes(DATA[:500] + b'\0' + DATA[501:]),
    'truncated': lambda entry: entry.path.write_bytes(DATA[:-1]),
    'longer': lambda entry: entry.path.write_bytes(DATA + b'x'),
    'empty': lambda entry: entry.path.write_bytes(b''),
    'missing': lambda entry: entry.path.unlink(),
    'no checksum': lambda entry: entry.checksum.unlink(),
    'an empty checksum': lambda entry: entry.checksum.write_bytes(b''),
    'a checksum that is not text': lambda entry: entry.checksum.write_bytes(b'\xff\xfe\0'),
    'the checksum of something else': lambda entry: entry.checksum.write_text(f'{zlib.crc32(b"other"):08x}'),
}


@pytest.mark.parametrize('damage', DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_entry_is_made_again(entry: CacheEntry, damage: Callable[[CacheEntry], object]) -> None:
    make = Maker()
    entry.get(make)
    damage(entry)
    assert not entry.is_good()
    assert entry.get(make).read_bytes() == DATA
    assert make.calls == 2
    assert entry.is_good()


@pytest.mark.parametrize('error', [RuntimeError('no'), KeyboardInterrupt(), MemoryError()])
def test_a_maker_that_fails_leaves_nothing_and_the_next_one_may_try(entry: CacheEntry, error: BaseException) -> None:
    def fail() -> bytes:
        raise error

    with pytest.raises(type(error)):
        entry.get(fail)
    assert names(entry.path.parent) == set()
    assert entry.get(Maker()).read_bytes() == DATA


def test_a_full_disk_is_reported_in_words_and_leaves_nothing(
    entry: CacheEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, 'fsync', full)
    with pytest.raises(SandboxError, match=r'cannot write the cache: .*No space left.* Free some space'):
        entry.get(Maker())
    assert names(entry.path.parent) == set()


def test_old_entries_make_room_for_new_ones(tmp_path: Path) -> None:
    for number in range(KEEP + 3):
        entry = CacheEntry(tmp_path / f'{number}.bin')
        entry.get(Maker())
        os.utime(entry.path, (number, number))
    kept = {f'{number}.bin' for number in range(3, KEEP + 3)}
    assert names(tmp_path) == kept | {f'{name}.crc32' for name in kept}


# The folder -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('mode', [0o777, 0o770, 0o702])
def test_a_folder_that_others_may_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int) -> None:
    monkeypatch.setenv('HABILIS_CACHE', str(tmp_path))
    (tmp_path / 'wasm').mkdir()
    (tmp_path / 'wasm').chmod(mode)
    with pytest.raises(SandboxError, match=r'is writable by other users, but code is executed from it.*chmod 700'):
        compiled_component()


def test_a_cache_that_cannot_be_a_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / 'file').write_text('')
    monkeypatch.setenv('HABILIS_CACHE', str(tmp_path / 'file'))
    with pytest.raises(SandboxError, match=r'cannot create the cache folder .* Set HABILIS_CACHE'):
        compiled_component()


def test_a_folder_that_cannot_be_written_is_reported_in_words(entry: CacheEntry) -> None:
    entry.path.with_name('entry.bin.lock').mkdir()
    with pytest.raises(SandboxError, match='cannot write the cache'):
        entry.get(Maker())


def test_looking_for_the_component_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HABILIS_CACHE', str(tmp_path / 'none'))
    assert find_compiled() is None
    assert not (tmp_path / 'none').exists()


# Several processes ----------------------------------------------------------------------------------------------------

SCRIPT = """
import sys, time
from pathlib import Path
from habilis.sandbox.wasm.cache import CacheEntry
folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
def make():
    with (folder / 'made').open('a') as log:
        log.write('x')
    time.sleep(seconds)
    return b'data' * 100_000
path = CacheEntry(folder / 'entry.bin').get(make)
print(len(path.read_bytes()))
"""


def start(folder: Path, seconds: float) -> 'subprocess.Popen[str]':
    command = [sys.executable, '-c', SCRIPT, str(folder), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_that_start_together_make_it_once(tmp_path: Path) -> None:
    processes = [start(tmp_path, 0.5) for _ in range(4)]
    assert [process.communicate(timeout=600)[0] for process in processes] == ['400000\n'] * 4
    assert (tmp_path / 'made').read_text() == 'x'
    assert names(tmp_path) == {'made', 'entry.bin', 'entry.bin.crc32'}


def test_when_the_process_that_makes_it_is_killed_another_one_takes_over(tmp_path: Path) -> None:
    first = start(tmp_path, 60)
    while not (tmp_path / 'made').exists():
        time.sleep(0.02)
    second = start(tmp_path, 0)
    time.sleep(0.3)
    assert second.poll() is None
    first.kill()
    first.communicate()
    assert second.communicate(timeout=600)[0] == '400000\n'
    assert (tmp_path / 'made').read_text() == 'xx'


def test_a_damaged_component_is_compiled_again_by_the_next_process(tmp_path: Path) -> None:
    compiled = compiled_component()
    folder = tmp_path / 'wasm'
    folder.mkdir(mode=0o700)
    built = f'{build.source_key()}-{build.builder_key()}.wasm'
    for name in (compiled.name, built):
        for suffix in ('', '.crc32'):
            source = compiled.with_name(name + suffix)
            if source.exists():  # a wheel carries what is built
                shutil.copy(source, folder)
    with (folder / compiled.name).open('r+b') as file:
        file.seek(1_000_000)
        file.write(b'damage')
    code = "from habilis import Sandbox\nwith Sandbox.create_sync() as s: print(s.run('1 + 1').value)"
    environment = {**os.environ, 'HABILIS_CACHE': str(tmp_path)}
    done = subprocess.run(
        [sys.executable, '-c', code], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout) == (0, '2\n')
    assert 'Compiling' in done.stderr
    assert 'Building' not in done.stderr
    assert CacheEntry(folder / compiled.name).is_good()
