"""The tree of errors. Each message says what happened and what to do next."""

from collections.abc import Sequence


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


class SettingsError(HabilisError):
    """A setting (argument, environment variable, `.env` or `habilis.toml`) is wrong; the message names it."""


class ModelError(HabilisError):
    """A language model could not answer."""

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status, if there was an answer."""

        self.retry_after = retry_after
        """Seconds the provider asks to wait."""

    retryable = False
    """Whether the same request may succeed later."""


class ModelNotFound(ModelError):
    """No provider, alias or model has that name."""


class NoModel(ModelError):
    """No model was named, and none could be found: no key, no server, no embedded model."""


class ModelAccessDenied(ModelError):
    """The key is missing, wrong, or may not use this model."""


class ModelRefused(ModelError):
    """The provider refused the request itself: a wrong parameter, or content it does not take."""


class ModelUnavailable(ModelError):
    """The provider cannot be reached, is overloaded or broken, or took too long."""

    retryable = True


class RateLimited(ModelUnavailable):
    """Too many requests."""


class ContextOverflow(ModelError):
    """The messages are longer than the model can read."""


class EmptyReply(ModelError):
    """The model answered with nothing, again and again."""


class DownloadError(ModelError):
    """Model weights cannot be had: no network, no room, or the file is not what it should be."""


class ToolDefinitionError(HabilisError):
    """A function cannot be a tool as it is: its name, its type hints, or its options."""


class ToolCallError(HabilisError):
    """A tool could not be called or did not answer as it should. The message is for the code that called it."""


class ToolArgumentsError(ToolCallError):
    """The arguments do not fit the tool's parameters. The tool was not called."""


class ToolResultError(ToolCallError):
    """The tool returned something else than it declares."""


class ToolTimeout(ToolCallError):
    """The tool took longer than its time limit."""


class ToolDenied(ToolCallError):
    """A gate, or a person, did not allow the call."""


class AgentError(HabilisError):
    """The agent cannot do what was asked: a wrong argument, or a call in the wrong state."""


class JournalError(HabilisError):
    """The record of a run cannot be read or written, or does not fit."""


class RunNotFound(JournalError):
    """The store has no run of that name (or it is somebody else's)."""


class RunBusy(JournalError):
    """Somebody else works on this run."""


class LeaseLost(JournalError):
    """Somebody else has taken over this run; what this process still wanted to write was refused."""


class CorruptRecord(JournalError):
    """A record, or a blob, is not what was written. The message names it."""

    def __init__(self, message: str, *, before: Sequence[object] = ()) -> None:
        super().__init__(message)
        self.before = before
        """The records before it, where a whole run was read."""


class RunChanged(JournalError):
    """The code no longer does what the record says it did."""


class NotDurable(JournalError):
    """A value cannot be written down, so it could not be brought back."""


class StoreUnavailable(JournalError):
    """The store cannot be reached, is full, or may not be written."""

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing
        """Whether it may be back soon: a lost connection, a server that starts again."""
