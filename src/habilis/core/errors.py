"""The tree of errors. Each message says what happened and what to do next."""


class HabilisError(Exception):
    """The root: catch this to catch everything Habilis raises on purpose."""


class SandboxError(HabilisError):
    """The sandbox, not the code inside it, could not do what was asked."""


class BackendNotFound(SandboxError):
    """No sandbox backend has that name, or what it needs is missing on this machine."""


class SandboxClosed(SandboxError):
    """The sandbox was closed (or expired) before the call."""


class SnapshotError(SandboxError):
    """A snapshot is damaged, or was made by a version that this one cannot read."""


class WorkspaceError(SandboxError):
    """A file cannot be read or written there: outside the workspace, missing, or too large."""


class PackageError(SandboxError):
    """A package cannot be had for the sandbox: not pure Python, not found, or no network."""


class PoolTimeout(SandboxError):
    """No sandbox of the pool became free in time."""
