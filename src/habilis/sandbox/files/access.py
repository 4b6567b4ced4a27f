"""The files of a sandbox, from the host."""

import asyncio

from habilis.core.errors import SandboxError
from habilis.sandbox.files.workspace import Workspace
from habilis.sandbox.options import SandboxOptions


class FileAccess:
    """Reads and writes the files of a sandbox."""

    def __init__(self, options: SandboxOptions) -> None:
        self._options = options

    @property
    def workspace(self) -> Workspace:
        """The workspace, for access from the host."""
        if self._options.workspace is None:
            msg = 'this sandbox has no workspace: pass workspace=… to Sandbox.create'
            raise SandboxError(msg)
        return self._options.workspace

    @property
    def has_workspace(self) -> bool:
        """Whether the sandbox has a workspace."""
        return self._options.workspace is not None

    async def upload(self, path: str, data: bytes | str) -> None:
        """Write a file of the workspace or of another writable folder."""
        await asyncio.to_thread(self._folder(path).write, path, data)

    async def download(self, path: str) -> bytes:
        """Read a file of the workspace or of another writable folder. Links are not followed."""
        return await asyncio.to_thread(self._folder(path).read, path)

    @property
    def writable_mounts(self) -> tuple[str, ...]:
        """The paths inside of the writable folders other than the workspace."""
        return tuple(folder.target for folder in self._options.folders)

    def _folder(self, path: str) -> Workspace:
        """The folder of a path inside: the innermost of the writable mounts, else the workspace."""
        found = [folder for folder in self._options.folders if folder.contains(path)]
        return max(found, key=lambda folder: len(folder.target)) if found else self.workspace
