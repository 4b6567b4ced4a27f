"""Errors of Habilis. Each message says what is wrong and what to do."""

from collections.abc import Sequence


class HabilisError(Exception):
    """Base class of all errors of Habilis."""


class SandboxError(HabilisError):
    """The sandbox itself failed, not the code inside it."""


class BackendNotFound(SandboxError):
    """Unknown sandbox backend, or one whose requirements are missing on this machine."""


class SandboxClosed(SandboxError):
    """The sandbox is closed or has expired."""


class SnapshotError(SandboxError):
    """A snapshot is damaged or of an incompatible version."""


class WorkspaceError(SandboxError):
    """A workspace file cannot be read or written: outside the workspace, missing, or too large."""


class WorkspaceFileNotFound(WorkspaceError):
    """The workspace has no such file or folder."""


class PackageError(SandboxError):
    """A package cannot be installed in the sandbox: no such package or version, not pure Python, or no network."""


class PoolTimeout(SandboxError):
    """Timeout while waiting for a free sandbox of the pool."""


class SettingsError(HabilisError):
    """Invalid setting (argument, environment variable, `.env` or `habilis.toml`)."""


class ModelError(HabilisError):
    """A model request failed."""

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status of the response, if there was one."""

        self.retry_after = retry_after
        """`Retry-After` of the provider in seconds."""

    retryable = False
    """Whether the same request may succeed later."""


class ModelNotFound(ModelError):
    """Unknown provider, alias or model."""


class NoModel(ModelError):
    """No model is configured, and none was found: no API key, no server, no embedded model."""


class ModelAccessDenied(ModelError):
    """The API key is missing, invalid, or has no access to this model."""


class ModelRefused(ModelError):
    """The provider refused the request: an invalid parameter, or filtered content."""


class FunctionsRefused(ModelRefused):
    """The server refuses requests that offer functions. An agent asks for code in fenced blocks instead."""


class ModelUnavailable(ModelError):
    """The provider is unreachable or overloaded, failed, or timed out."""

    retryable = True


class RateLimited(ModelUnavailable):
    """Too many requests."""


class ContextOverflow(ModelError):
    """The messages exceed the context window of the model."""


class EmptyReply(ModelError):
    """The model returned empty replies repeatedly."""


class DownloadError(ModelError):
    """Model weights cannot be installed: no network, a full disk, or a wrong checksum."""


class ToolDefinitionError(HabilisError):
    """A function cannot become a tool: invalid name, type hints, or options."""


class ToolCallError(HabilisError):
    """A tool call failed. The message is shown to the calling code."""


class ToolArgumentsError(ToolCallError):
    """Invalid arguments. The tool was not called."""


class ToolResultError(ToolCallError):
    """The result does not match the declared type."""


class ToolTimeout(ToolCallError):
    """The tool timed out."""


class ToolServerError(ToolCallError):
    """An MCP server cannot be started or reached, has ended, or breaks the protocol."""


class ToolDenied(ToolCallError):
    """A gate or a person denied the call."""


class AgentError(HabilisError):
    """Invalid use of an agent: a wrong argument, or a call in the wrong state."""


class ModelRetry(AgentError):
    """Raised by an output validator: the answer is refused, and the model is sent this message to correct it."""


class RunStopped(AgentError):
    """A run without an answer: at a limit or waiting for a person (`Result.unwrap`), or stopped by `agent.stop`."""

    def __init__(self, message: str, *, ended: str = '', run_id: str = '', question: str | None = None) -> None:
        super().__init__(message)
        self.ended = ended
        """Why the run stopped: `Result.ended`, or `stopped`."""

        self.run_id = run_id
        """Id to resume the run by."""

        self.question = question
        """What a person is asked, if the run waits for an answer or an approval."""


class DocumentError(HabilisError, ValueError):
    """A text is not JSON that Habilis wrote: damaged, of another kind, or of a newer version."""


class JournalError(HabilisError):
    """The journal of a run cannot be read, written or replayed."""


class RunNotFound(JournalError):
    """No such run in the store, or it belongs to another user."""


class RunBusy(JournalError):
    """Another process holds the lease of this run."""


class LeaseLost(JournalError):
    """Another process has taken over this run, so the append was refused."""


class CorruptRecord(JournalError):
    """A record or blob is damaged."""

    def __init__(self, message: str, *, before: Sequence[object] = ()) -> None:
        super().__init__(message)
        self.before = before
        """The valid records before it, if a whole run was read."""


class RunChanged(JournalError):
    """The code differs from what the journal recorded."""


class NotDurable(JournalError):
    """A value cannot be stored in the journal."""


class StoreUnavailable(JournalError):
    """The store is unreachable, full or read-only."""

    def __init__(self, reason: str, *, passing: bool = False, advice: str = '') -> None:
        super().__init__(f'{reason}. {advice}' if advice else reason)
        self.passing = passing
        """Whether the error is transient: a lost connection, a restarting server."""

        self.reason = reason
        """The message without the advice, which is that of a run that was started."""


class ForgeError(HabilisError):
    """A tool cannot be built, kept or read."""


class ToolExists(ForgeError):
    """The library has a tool of this name already."""


class ToolNotFound(ForgeError):
    """The library has no such tool, or no such version of it."""


class SkillError(HabilisError):
    """A skill is refused, or cannot be found or written."""


class RememberError(HabilisError, ValueError):
    """The memory refuses a value, or has no such entry or task."""
