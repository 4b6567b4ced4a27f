"""The results of a sandbox, and the protocols of a backend. Read this first.

A *session* (`Sandbox`) is the same for every backend: it has limits, tools, workspace and checkpoints. A *backend*
starts *guests*, interpreters that run the kernel of `sandbox/guest`, and transports text between guest and session.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from habilis.core.limits import Limits
from habilis.core.previews import short_repr
from habilis.sandbox.network import Grant

ErrorKind = Literal[
    'exception', 'syntax', 'exit', 'code_rules', 'time', 'memory', 'output', 'calls', 'cancelled', 'stack', 'broken'
]
"""Why a cell failed. The first four are errors of the code; in the others the host ended the cell."""

ROLLED_BACK: frozenset[ErrorKind] = frozenset({'time', 'memory', 'cancelled', 'stack', 'broken'})
"""After these errors the interpreter is replaced, and the variables are restored as they were before the cell."""

Stream = Literal['stdout', 'stderr']


@dataclass(frozen=True, kw_only=True)
class CellError:
    """The error of a cell."""

    kind: ErrorKind
    """Why the cell failed; for limits, the limit that was reached."""

    type: str
    """Name of the exception class."""

    message: str
    """Message of the exception."""

    traceback: str = ''
    """The user's own frames with their source lines, as Python prints them."""

    line: int | None = None
    """Line of the cell where it happened."""

    def __str__(self) -> str:
        return f'{self.type}: {self.message}' if self.message else self.type


Side = Literal['code', 'model', 'both']
"""Who calls a tool, or may call it: the code in the sandbox, the model itself (as a function call), or both."""

CallDecision = Literal['allowed', 'changed', 'approved', 'denied', 'refused', 'invalid', 'waiting', 'unfinished']
"""What was decided about a call: `changed` by a gate, `approved` by a person, `denied` by a gate, `refused` by a person
(or because there is none, or the tool is disabled), `invalid` arguments. Only in the audit of a recorded run: `waiting`
for a person, and `unfinished`, a call whose end is not recorded."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ToolCall:
    """One call of a tool: in `Cell.calls`, in the steps and events of an agent, and in the audit of a recorded run."""

    id: int = 0
    """Counts the calls of a toolbox; 0 where there is no toolbox."""

    tool: str
    """Name of the tool."""

    arguments: Mapping[str, object] | None
    """By parameter, as the tool got them; as the caller wrote them if they did not fit. None if they were not kept."""

    ok: bool = False
    """Whether the tool returned."""

    result: str = ''
    """The start of the result's `repr`."""

    error: str | None = None
    """Class and message of the exception."""

    hidden: bool = False
    """The code got `None` instead of the exception (`on_error='none'`)."""

    log: tuple[str, ...] = ()
    """What the tool has logged."""

    seconds: float = 0.0
    """How long it took; 0 if that is not known."""

    decision: CallDecision = 'allowed'
    side: Side = 'code'
    """`code` or `model`."""

    at: float | None = None
    """When the journal recorded its start; None for a call that is not recorded."""

    path: str = ''
    """Path of its record in the journal, which is the id of the call everywhere; empty for one that is not recorded."""

    def __repr__(self) -> str:
        return short_repr(self)


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """A file of the workspace, or of another writable folder, that the cell created or changed."""

    path: str
    """Relative to the workspace, or absolute in another writable folder; with forward slashes."""

    size: int
    change: Literal['new', 'changed']


@dataclass(frozen=True, kw_only=True, repr=False)
class Display:
    """A rich form of a value, such as HTML or an image."""

    mime: str
    data: str | bytes
    """Text, or bytes for images."""

    def __repr__(self) -> str:
        return short_repr(self)


@dataclass(frozen=True, kw_only=True, repr=False)
class Cell:
    """Result of one cell."""

    value: object = None
    """The last expression's value, if it is plain data; None otherwise (see `text`)."""

    text: str | None = None
    """Its `repr`; None if the cell has no value."""

    stdout: str = ''
    stderr: str = ''
    error: CellError | None = None
    seconds: float = 0.0
    files: tuple[FileChange, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    displays: tuple[Display, ...] = ()

    lost: tuple[str, ...] = ()
    """Variables that could not be restored when the interpreter was replaced (see `ROLLED_BACK`)."""

    rolled_back: bool = False
    """Whether the variables are as before the cell, because the interpreter was replaced. Tool calls and changes of
    files are never undone."""

    waited: float = 0.0
    """Seconds that the code slept, or waited for asynchronous tools, connections or input, as far as the host knows."""

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def ok(self) -> bool:
        """Whether the code ran to its end."""
        return self.error is None


@dataclass(frozen=True, kw_only=True)
class Variable:
    """Description of a variable."""

    name: str
    type: str
    size: str
    """Such as `3 items`; empty if the type has no size."""

    text: str = ''
    """Its `repr`, if it is short and plain."""


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A host folder inside the sandbox."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, kw_only=True)
class PythonTarget:
    """The Python inside, for which packages are installed."""

    version: str
    """Such as `3.12`."""

    platforms: tuple[str, ...] = ()
    """Tags of the wheels with native code that run there, best first; none: pure Python only."""


WASM_PYTHON = PythonTarget(version='3.14')
"""The Python of the `wasm` backend, and of backends that name none: pure Python only."""


@dataclass(frozen=True, kw_only=True)
class GuestSpec:
    """What a backend needs to start a guest."""

    limits: Limits = field(default_factory=Limits)
    mounts: tuple[Mount, ...] = ()
    network: Grant | None = None
    """For backends with sockets; the others ask the session for each connection."""


class HostSide(Protocol):
    """The session during a request, as the guest sees it. Called on the thread that runs the guest."""

    def answer(self, message: str) -> str:
        """Reply to a message of the kernel. Raises `Interrupted` when the guest must end now."""
        ...

    def write(self, stream: Stream, data: bytes) -> None:
        """Handle output that bypassed the kernel (a direct write to a file descriptor)."""
        ...

    def check(self) -> None:
        """Called periodically while the guest computes. Raises `Interrupted` when it must end now."""
        ...


class Interrupted(BaseException):
    """The guest must end at once."""


class GuestDied(Exception):
    """The interpreter has ended. `kind` is the reason, as far as the backend knows it."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind


class Guest(Protocol):
    """One running interpreter. All calls but `interrupt` come from one thread at a time, and may block."""

    def enter(self, message: str, host: HostSide) -> str:
        """Send a request to the kernel and return its answer. Raises `GuestDied` if the interpreter ends."""
        ...

    def interrupt(self) -> None:
        """Make a running `enter` raise `GuestDied` soon. Thread-safe."""
        ...

    def close(self) -> None:
        """Free all resources. Never called while `enter` runs."""
        ...


@runtime_checkable
class BriefGuest(Guest, Protocol):
    """A guest that can be entered for a moment. The caller's thread is enough for that, also that of an event loop."""

    def begin(self, message: str, host: HostSide) -> str | None:
        """Like `enter`, but return after some milliseconds, or when a message is not quick to answer. None: the request
        goes on with `go_on`."""
        ...

    def go_on(self, host: HostSide) -> str:
        """Like `enter`, for the rest of a request that was begun, perhaps on another thread."""
        ...


@runtime_checkable
class ForkableGuest(Guest, Protocol):
    """A guest that can be copied with all that is in its memory. Otherwise forks are made by a snapshot."""

    def fork(self) -> Guest | None:
        """A copy of the guest. None if a snapshot must be used this time. Raises `GuestDied` if the guest has ended.

        Never called while `enter` runs.
        """
        ...


class Backend(Protocol):
    """Starts guests. Registered in the entry point group `habilis.sandboxes`; created once per process.

    The parameters of its constructor are the settings of `Sandbox.create` that it takes (see `BackendSettings`).
    If its guests can start processes, it has an attribute `has_processes = True`; if not, it may say why in
    `why_no_processes`. If it runs packages with native code, it has `python: PythonTarget`, see `python_of`.
    `runs_between_requests` says whether code can change files of the host while no request runs; by default, whether it
    can start processes; `is_idle(guest)`, if there is one, says that no code of a guest does so now.
    `copies_files = True` says that files are copied to another machine and back.
    """

    @property
    def isolation(self) -> str:
        """How the code is isolated, in one line for users."""
        ...

    def start(self, spec: GuestSpec) -> Guest:
        """Start a guest. May block. Raises `SandboxError` that says what is missing."""
        ...


@runtime_checkable
class QuickBackend(Backend, Protocol):
    """A backend that starts a guest in a moment."""

    def start_here(self, spec: GuestSpec, *, alone: bool) -> Guest | None:
        """Like `start`, but on the thread of an event loop. None if that would take too long. If `alone`, no other
        sandbox is at work, and a few milliseconds are not too long."""
        ...


def python_of(backend: Backend) -> PythonTarget:
    """The Python for which packages of this backend are installed."""
    return getattr(backend, 'python', WASM_PYTHON)


def why_no_processes(backend: Backend) -> str:
    """Why code inside cannot start processes, and what to do; empty if it can."""
    if getattr(backend, 'has_processes', False):
        return ''
    return getattr(backend, 'why_no_processes', "use Agent(sandbox='process')")


BackendFactory = Callable[..., Backend]
