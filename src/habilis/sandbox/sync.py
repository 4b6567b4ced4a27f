"""The sandbox without `await`, for scripts and notebooks: one thin layer over the asynchronous one."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self, Unpack

from habilis.core.waiting import wait_for
from habilis.sandbox.cellhost import OnOutput
from habilis.sandbox.contract import Cell
from habilis.sandbox.options import Settings
from habilis.sandbox.session import Sandbox
from habilis.sandbox.snapshot import Snapshot


class SyncSandbox:
    """`Sandbox` with plain methods. Made by `Sandbox.create_sync`; a context manager too."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        """The asynchronous sandbox behind it. It belongs to the background loop."""

    @classmethod
    def create(cls, backend_name: str = 'wasm', /, **settings: Unpack[Settings]) -> Self:
        """See `Sandbox.create`."""
        return cls(wait_for(Sandbox.create(backend_name, **settings)))

    @classmethod
    def restore(cls, data: bytes, backend_name: str = 'wasm', /, **settings: Unpack[Settings]) -> Self:
        """See `Sandbox.restore`."""
        return cls(wait_for(Sandbox.restore(data, backend_name, **settings)))

    def run(self, code: str, *, seconds: float | None = None, on_output: OnOutput | None = None) -> Cell:
        """See `Sandbox.run`."""
        return wait_for(self.sandbox.run(code, seconds=seconds, on_output=on_output))

    def fork(self) -> 'SyncSandbox':
        """See `Sandbox.fork`."""
        return SyncSandbox(wait_for(self.sandbox.fork()))

    def snapshot(self) -> Snapshot:
        """See `Sandbox.snapshot`."""
        return wait_for(self.sandbox.snapshot())

    def set_variables(self, variables: Mapping[str, object]) -> None:
        """See `Sandbox.set_variables`."""
        wait_for(self.sandbox.set_variables(variables))

    def get_variables(self, *names: str) -> dict[str, object]:
        """See `Sandbox.get_variables`."""
        return wait_for(self.sandbox.get_variables(*names))

    def upload(self, path: str, data: bytes | str) -> None:
        """See `Sandbox.upload`."""
        wait_for(self.sandbox.upload(path, data))

    def download(self, path: str) -> bytes:
        """See `Sandbox.download`."""
        return wait_for(self.sandbox.download(path))

    def cancel(self) -> bool:
        """See `Sandbox.cancel`."""
        return self.sandbox.cancel()

    def close(self) -> None:
        """See `Sandbox.close`."""
        wait_for(self.sandbox.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
