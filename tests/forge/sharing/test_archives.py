"""The file that tools are shared in: hostile files are refused, and nothing of them reaches the disk."""

import io
import stat
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from habilis.core.errors import HabilisError
from habilis.forge.sharing.archives import INDEX, LIMITS, read_archive, write_archive

FILES = {'double': {'tool.py': b'code', 'test_tool.py': b'tests', 'tool.json': b'{}'}}


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / 'tools.zip'
    write_archive(FILES, path)
    return path


def changed(path: Path, change: Callable[[zipfile.ZipFile], None]) -> Path:
    """The file with something added."""
    with warnings.catch_warnings(), zipfile.ZipFile(path, 'a') as archive:
        warnings.simplefilter('ignore')  # about duplicate names
        change(archive)
    return path


def rewritten(path: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """The file with entries replaced, or left out for None."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: change(name, archive.read(name)) for name in archive.namelist()}
    with zipfile.ZipFile(path, 'w') as archive:
        for name, data in entries.items():
            if data is not None:
                archive.writestr(name, data)
    return path


def refused(path: Path, reason: str) -> None:
    before = sorted(path.parent.rglob('*'))
    with pytest.raises(HabilisError, match=reason) as raised:
        read_archive(path)
    assert str(raised.value).count('is refused') <= 1
    assert sorted(path.parent.rglob('*')) == before


def test_what_is_written_is_read(good: Path) -> None:
    assert read_archive(good).tools == FILES


def test_equal_tools_make_equal_files(good: Path, tmp_path: Path) -> None:
    write_archive(FILES, tmp_path / 'again.zip')
    assert (tmp_path / 'again.zip').read_bytes() == good.read_bytes()


@pytest.mark.parametrize(
    'name',
    [
        '../../evil',
        '../evil/tool.py',
        '/etc/evil/tool.py',
        'double/../../tool.py',
        'double\\tool.py',
        'C:/double/tool.py',
        'double/tool.py/more',
        'double/evil.py',
        'double/',
        '',
        'double/tool.py\0.txt',
        '~/tool.py',
        '1double/tool.py',
    ],
)
def test_an_unexpected_path_is_refused(good: Path, name: str) -> None:
    refused(changed(good, lambda archive: archive.writestr(zipfile.ZipInfo(name), b'evil')), 'is refused')


@pytest.mark.parametrize('name', ['json', 'print', 'class', '__init__', 'final_answer'])
def test_a_name_that_hides_something_is_refused(good: Path, name: str) -> None:
    refused(changed(good, lambda archive: archive.writestr(f'{name}/tool.py', b'evil')), 'cannot be the name')


def test_a_duplicate_entry_is_refused(good: Path) -> None:
    refused(changed(good, lambda archive: archive.writestr('double/tool.py', b'evil')), 'twice')


@pytest.mark.parametrize('kind', [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_are_refused(tmp_path: Path, kind: int) -> None:
    info = zipfile.ZipInfo('double/tool.py')
    info.external_attr = (kind | 0o777) << 16
    with zipfile.ZipFile(tmp_path / 'tools.zip', 'w') as archive:
        archive.writestr(info, '/etc/passwd')
    refused(tmp_path / 'tools.zip', 'not a plain file')


def test_a_bomb_is_refused_without_unpacking_it(tmp_path: Path) -> None:
    path = tmp_path / 'bomb.zip'
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as archive, archive.open('double/tool.py', 'w') as entry:
        for _ in range(100):
            entry.write(b'0' * LIMITS.entry_bytes)
    refused(path, 'too large')


def test_a_bomb_that_lies_about_its_size_is_refused(good: Path) -> None:
    rewritten(good, lambda name, data: b'0' * 5 * LIMITS.entry_bytes if name.endswith('/tool.py') else data)
    data = good.read_bytes()
    lying = data.replace((5 * LIMITS.entry_bytes).to_bytes(4, 'little'), (100).to_bytes(4, 'little'))
    assert lying != data
    good.write_bytes(lying)
    refused(good, 'is refused')


def test_ten_gigabytes_that_an_entry_announces_are_refused(tmp_path: Path) -> None:
    path = tmp_path / 'bomb.zip'
    info = zipfile.ZipInfo('double/tool.py')
    with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr(info, b'')
        info.file_size = info.compress_size = 10 * 10**9
    refused(path, 'is refused')


def test_too_many_entries_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / 'many.zip', 'w') as archive:
        for number in range(3100):
            archive.writestr(f'tool_{number}/tool.py', b'')
    refused(tmp_path / 'many.zip', 'entries')


def test_other_compressions_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / 'tools.zip', 'w', zipfile.ZIP_LZMA) as archive:
        archive.writestr('double/tool.py', b'x')
    refused(tmp_path / 'tools.zip', 'unusual')


def test_a_tampered_file_is_refused(good: Path) -> None:
    refused(rewritten(good, lambda name, data: b'evil' if name == 'double/tool.py' else data), 'hash differs')


def test_a_file_that_is_missing_or_not_announced_is_refused(good: Path, tmp_path: Path) -> None:
    refused(changed(good, lambda archive: archive.writestr('second/tool.py', b'evil')), 'hash differs')
    write_archive(FILES, good)
    refused(rewritten(good, lambda name, data: None if name == 'double/tool.py' else data), 'hash differs')
    write_archive({'double': {'tool.py': b'code'}}, good)
    refused(good, r'has no test_tool\.py')


@pytest.mark.parametrize('index', [None, b'', b'[]', b'{"format": 99, "files": {}}', b'[' * 100_000])
def test_a_damaged_list_of_hashes_is_refused(good: Path, index: bytes | None) -> None:
    refused(rewritten(good, lambda name, data: index if name == INDEX else data), 'is refused')


def test_a_file_that_is_missing_or_a_folder_is_named(tmp_path: Path) -> None:
    refused(tmp_path / 'missing.zip', 'cannot read .*No such file')
    (tmp_path / 'folder').mkdir()
    refused(tmp_path / 'folder', 'cannot read .*Is a directory')


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200), st.integers(0, 600), st.booleans())
def test_no_damage_makes_it_crash(good: Path, noise: bytes, place: int, whole: bool) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, 'w') as archive:
        archive.writestr('double/tool.py', b'x' * 100)
    data = buffer.getvalue()
    path = good.with_name('noise.zip')
    path.write_bytes(noise if whole else data[:place] + noise + data[place + len(noise) :])
    with pytest.raises(HabilisError):
        read_archive(path)
