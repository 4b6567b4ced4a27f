"""The policy protocol: what happens around a model turn and after a cell, beyond the loop itself. Read this first.

A policy sees what *happened*: the form of a reply, the error and output of a cell, the tool calls, and what it decided
before. It never sees the words of the task, and it cannot change code. Its verdicts are recorded with the run, so a
replay takes the same way with any model and any policy.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, runtime_checkable

from habilis.sandbox import ToolCall
from habilis.sandbox.contract import Cell

ReplyForm = Literal['empty', 'truncated', 'repeating', 'words']
"""A reply with nothing to run: no text at all, code that ends in the middle, the same lines again and again, prose."""


@dataclass(frozen=True, kw_only=True)
class SeenReply:
    """A reply that has nothing to run."""

    form: ReplyForm
    text: str = ''
    is_answer: bool = False
    """Whether the loop would take it as the answer."""


@dataclass(frozen=True, kw_only=True)
class SeenCell:
    """A cell that has ended."""

    code: str
    cell: Cell
    calls: Sequence[ToolCall] = ()
    is_answer: bool = False
    """Whether it called `final_answer` with a value of the right type."""

    can_stop: bool = True
    """Whether `final_answer` was there to be called."""

    names: Collection[str] = ()
    """Tools and variables that code can use now."""

    lost: Collection[str] = ()
    """Variables that could not be restored when the run was resumed."""

    coroutines: Sequence[str] = ()
    """Variables to which it assigned coroutines, which were not awaited."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a policy decided. The default lets the loop go on."""

    note: str = ''
    """A sentence for the model, after the observation or in its place."""

    refuse: bool = False
    """Do not take the answer. Ignored once a tool was called in the run: no effect may happen twice."""

    forget: Literal['nothing', 'reply', 'steps'] = 'nothing'
    """What the model no longer sees: this reply and what came of it, or all steps of the run. It sees the note instead,
    if there is one. `steps` is ignored once a tool was called, and both are if this reply called one."""


@dataclass(kw_only=True)
class History:
    """What happened in a run so far, oldest first."""

    tools: Mapping[str, str] = field(default_factory=dict[str, str])
    """Signatures of the tools that code can call, by name."""

    found_tools: frozenset[str] = frozenset()
    """Those that were found in the library for the task."""

    helpers: frozenset[str] = frozenset()
    """Those that the agent brings for any task, such as `make_tool` and `delegate`."""

    is_talk: bool = False
    """Whether the task is what a person said in a conversation: words are an answer as good as any."""

    expects_code: bool = False
    """Whether there is something for code to work on, and no conversation: words before any code are doubtful."""

    turns: list[tuple[SeenReply | SeenCell, Verdict]] = field(
        default_factory=list[tuple[SeenReply | SeenCell, Verdict]]
    )

    model_calls: list[ToolCall] = field(default_factory=list[ToolCall])
    """Tool calls that the model made itself, not through code."""

    @property
    def cells(self) -> list[SeenCell]:
        """The cells among the turns."""
        return [seen for seen, _ in self.turns if isinstance(seen, SeenCell)]

    @property
    def own_tools(self) -> list[str]:
        """Names of the tools that were given for this task: not those of the library, and not the helpers."""
        return [name for name in self.tools if name not in self.found_tools | self.helpers]

    @property
    def has_called_tools(self) -> bool:
        """Whether any tool was called in the run."""
        return bool(self.model_calls) or any(cell.calls for cell in self.cells)

    @property
    def has_refused(self) -> bool:
        """Whether an answer was refused before."""
        return any(verdict.refuse for _, verdict in self.turns)

    def allowed(self, verdict: Verdict, calls: Sequence[ToolCall] = ()) -> Verdict:
        """The verdict without what could make an effect happen twice, given the tool calls of the run and `calls`."""
        if not calls and not self.has_called_tools:
            return verdict
        is_kept = bool(calls) or verdict.forget == 'steps'
        return replace(verdict, refuse=False, forget='nothing' if is_kept else verdict.forget)

    def failures(self) -> int:
        """Number of failed cells since the last one that succeeded."""
        count = 0
        for cell in reversed(self.cells):
            if cell.cell.error is None:
                break
            count += 1
        return count


@runtime_checkable
class Policy(Protocol):
    """Decides around model turns and cells. Keeps no state: everything it needs is in the history."""

    def text(self, name: str) -> str:
        """A prompt by its name: a file of `agent/context/prompts`, or a text of the policy in its place."""
        ...

    def imports(self) -> Mapping[str, str]:
        """Names that code finds imported when it starts, with their modules; a module has its own name."""
        ...

    def task_note(self, history: History, *, can_stop: bool) -> str:
        """Text to add below the task, before anything has happened; `can_stop` as in `SeenCell`."""
        ...

    def temperature(self, history: History) -> float | None:
        """Temperature of the next request where the user has set none; None leaves it to the model."""
        ...

    def may_ask_people(self) -> bool:
        """Whether code gets tools that ask a person in the middle of a run. Asked by `habilis run` and `assistant`."""
        ...

    def memory_tokens(self) -> int:
        """Maximum tokens, estimated, that a message of a conversation gets from the memory. Asked by `assistant`."""
        ...

    def after_reply(self, reply: SeenReply, history: History) -> Verdict:
        """Called for a reply with nothing to run."""
        ...

    def after_cell(self, cell: SeenCell, history: History) -> Verdict:
        """Called when a cell has ended. `history` does not have the cell yet."""
        ...
