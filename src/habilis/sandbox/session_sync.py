"""`SyncSandbox`: a sandbox for code without `await`."""

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Self, Unpack

from habilis.core.background_loop import run_blocking
from habilis.sandbox.contract import Cell
from habilis.sandbox.host.cell_host import OnOutput
from habilis.sandbox.options import SandboxSettings
from habilis.sandbox.session import Sandbox
from habilis.sandbox.snapshot import Snapshot


class SyncSandbox:
    """`Sandbox` for code without `await`. Created by `Sandbox.create_sync`; a context manager."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        """The asynchronous sandbox. It belongs to the background event loop."""

    @classmethod
    def create(cls, backend_name: str = 'wasm', /, **settings: Unpack[SandboxSettings]) -> Self:
        """See `Sandbox.create`."""
        return cls(run_blocking(Sandbox.create(backend_name, **settings)))

    @classmethod
    def restore(cls, data: bytes, backend_name: str = 'wasm', /, **settings: Unpack[SandboxSettings]) -> Self:
        """See `Sandbox.restore`."""
        return cls(run_blocking(Sandbox.restore(data, backend_name, **settings)))

    def run(self, code: str, *, seconds: float | None = None, on_output: OnOutput | None = None) -> Cell:
        """See `Sandbox.run`."""
        return run_blocking(self.sandbox.run(code, seconds=seconds, on_output=on_output))

    def install(self, *packages: str | os.PathLike[str]) -> None:
        """See `Sandbox.install`."""
        run_blocking(self.sandbox.install(*packages))

    def fork(self) -> 'SyncSandbox':
        """See `Sandbox.fork`."""
        return SyncSandbox(run_blocking(self.sandbox.fork()))

    def snapshot(self) -> Snapshot:
        """See `Sandbox.snapshot`."""
        return run_blocking(self.sandbox.snapshot())

    def set_variables(self, variables: Mapping[str, object]) -> None:
        """See `Sandbox.set_variables`."""
        run_blocking(self.sandbox.set_variables(variables))

    def get_variables(self, *names: str) -> dict[str, object]:
        """See `Sandbox.get_variables`."""
        return run_blocking(self.sandbox.get_variables(*names))

    def upload(self, path: str, data: bytes | str) -> None:
        """See `Sandbox.upload`."""
        run_blocking(self.sandbox.upload(path, data))

    def download(self, path: str) -> bytes:
        """See `Sandbox.download`."""
        return run_blocking(self.sandbox.download(path))

    def cancel(self) -> bool:
        """See `Sandbox.cancel`."""
        return self.sandbox.cancel()

    def close(self) -> None:
        """See `Sandbox.close`."""
        run_blocking(self.sandbox.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
