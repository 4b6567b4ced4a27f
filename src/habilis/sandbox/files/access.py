"""The files of a sandbox, from the host."""

import asyncio
from pathlib import Path

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

    @property
    def write_advice(self) -> str:
        """What code is told that tries to change files; empty if it may (`read_only`). The host may either way."""
        return self._options.write_advice

    @property
    def shared_folders(self) -> tuple[Path, ...]:
        """The folders of the host that can be changed by code or by the host, without temporary ones."""
        spaces = self._options.writable_folders
        return tuple(space.folder for space in spaces if not (space.read_only or space.is_temporary))

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
