"""The result of a run, its steps and its limits. Read this first."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, cast, overload

from typing_extensions import TypeVar

from habilis.agent.hooks.result_page import result_forms
from habilis.agent.output_json import pack_output, read_output
from habilis.core.dataclass_codec import DataclassCodec
from habilis.core.documents import DocumentFormat
from habilis.core.errors import RunStopped
from habilis.core.previews import short_repr, shorten
from habilis.core.wrong_names import missing_attribute
from habilis.models.contract import Message, Reply, Usage
from habilis.sandbox import ToolCall
from habilis.sandbox.contract import Cell

T = TypeVar('T')
T_co = TypeVar('T_co', covariant=True, default=Any)
OUTPUT_LENGTH = 200
"""Max characters of the output in the `repr` of a result."""

LOCAL_SECONDS = 600.0
"""Default time limit of a run with a model in this process, which keeps the processor busy: ten minutes are enough for
twenty steps of a small model, and a run that goes in circles ends within a coffee break."""

Ended = Literal[
    'answer',
    'question',
    'approval',
    'max_steps',
    'max_seconds',
    'max_requests',
    'max_tokens',
    'max_cost',
    'max_tool_calls',
    'invalid_output',
]
"""Why a run stopped. All but `answer` can be resumed: `agent.resume(result.run_id)`; `approval` once a person has
answered."""


@dataclass(frozen=True, kw_only=True)
class RunLimits:
    """Limits of one run. Reaching one ends the run by its name; None is no limit.

    What subagents and agents as tools use counts too: at a limit of their parent they end as at their own.
    """

    steps: int | None = 20
    """Maximum number of model replies that are acted on."""

    seconds: float | Literal['default'] | None = 'default'
    """Time in which the run works, without the time that a person takes to approve a call. By default
    `LOCAL_SECONDS` with a model in this process, no limit with others."""

    requests: int | None = None
    """Maximum number of model requests, repairs and summary included."""

    tokens: int | None = None
    """Maximum number of input and output tokens, as the provider counts them."""

    cost: float | None = None
    """Maximum cost in US dollars, where prices are known."""

    tool_calls: int | None = None
    helpers: int | None = 20
    """Maximum number of subagents that `delegate` starts. A further call is refused, and the run continues."""

    def __post_init__(self) -> None:
        for name in (limit.name for limit in fields(self)):
            value = getattr(self, name)
            if name == 'seconds' and value == 'default':
                continue
            kind, words = (int | float, 'a number') if name in ('seconds', 'cost') else (int, 'a whole number')
            good = isinstance(value, kind) and value is not True and value > 0 and math.isfinite(value)
            if value is not None and not good:
                msg = f'RunLimits.{name} must be {words} more than zero, or None for no limit, not {value!r}'
                raise ValueError(msg)


@dataclass(frozen=True, kw_only=True, repr=False)
class Step:
    """One turn of the loop: the reply, the code that was run, and what the model saw of it."""

    number: int
    reply: Reply
    code: str | None = None
    """The code that was run, byte for byte as the model wrote it."""

    cell: Cell | None = None
    calls: tuple[ToolCall, ...] = ()
    observation: str | None = None
    """Text sent back to the model; None in the step that ended the run."""

    seconds: float = 0.0

    def __repr__(self) -> str:
        return short_repr(self)


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A decision that a run waits for."""

    path: str
    """Path in the journal, to answer this one and not another."""

    question: str
    tool: str = ''
    """The tool that waits for approval; empty for other questions."""

    arguments: Mapping[str, object] = field(default_factory=dict[str, object])
    diff: str = ''
    """What the call would change, if the tool has a preview."""

    code: str = ''
    """The code that makes the call."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Whether independent solutions of the same task gave the same answer. True in a condition only if they did."""

    agreed: bool | None
    """None if it could not be found out; see `reason`."""

    outputs: tuple[object, ...] = ()
    """The answers, the first solution's first."""

    reason: str = ''
    """Why there was no comparison, or why the larger model did not decide."""

    decided_by: str = ''
    """Name of the model that the task was handed to after a disagreement."""

    def __bool__(self) -> bool:
        return self.agreed is True


@dataclass(frozen=True, kw_only=True, repr=False)
class Result(Generic[T_co]):
    """The outcome of a run."""

    output: T_co | None
    """The answer. None unless `ended` is `answer`; see `unwrap`."""

    ended: Ended
    run_id: str
    steps: tuple[Step, ...] = ()
    usage: Usage = field(default_factory=Usage)
    usage_by_model: Mapping[str, Usage] = field(default_factory=dict[str, Usage])
    seconds: float = 0.0
    messages: tuple[Message, ...] = ()
    """The conversation, to continue it: `agent.run('…', history=result.messages)`."""

    variables: Mapping[str, object] = field(default_factory=dict[str, object])
    """The variables passed to the run, with their values at its end."""

    summary: str | None = None
    question: str | None = None
    """The question to the user, if the run ended with `question`."""

    waiting: tuple[Waiting, ...] = ()
    """Open decisions, if the run ended with `approval`: use `habilis runs approve` or `agent.answer`."""

    scripted: bool = False
    """Whether the replies came from a script, not from a model."""

    agreement: Agreement | None = None
    """Comparison with further solutions, for an agent with `agree=2` or more."""

    @property
    def cost(self) -> float | None:
        """US dollars, where prices are known."""
        return self.usage.cost

    def unwrap(self) -> T_co:
        """The answer. Raises `RunStopped` if the run ended without one; the error says why, and how to resume."""
        if self.ended == 'answer':
            return cast('T_co', self.output)
        waiting = '; '.join(decision.question for decision in self.waiting)
        question = self.question or waiting or None
        asked = f' ({question})' if question else ''
        msg = f'the run ended with {self.ended!r} and no answer{asked}; {self._how_to_resume()}'
        raise RunStopped(msg, ended=self.ended, run_id=self.run_id, question=question)

    def _how_to_resume(self) -> str:
        run = repr(self.run_id)
        if self.ended == 'approval':
            return f'decide with agent.answer({run}, True) or `habilis runs approve`, then agent.resume({run})'
        call, option = (f"{run}, 'the answer'", ' --answer TEXT') if self.ended == 'question' else (run, '')
        return f'resume it with agent.resume({call}) or `habilis runs resume {self.run_id}{option}`'

    # Hidden from type checkers, which would otherwise accept any misspelt name.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            raise missing_attribute('Result', name, dir(type(self)))

    # Shown to people --------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        output = f'output={shorten(self.output, OUTPUT_LENGTH)}, ' if self.ended == 'answer' else ''
        question = f', question={shorten(self.question, OUTPUT_LENGTH)}' if self.question else ''
        cost = '' if self.cost is None else f', cost={self.cost:.4g}'
        facts = f'steps={len(self.steps)}, seconds={self.seconds:.1f}{cost}, run_id={self.run_id!r}'
        return f'Result({output}ended={self.ended!r}{question}, {facts})'

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """For notebooks, which look for this name."""
        return result_forms(self)

    # JSON -------------------------------------------------------------------------------------------------------------

    def to_json(self, *, indent: int | None = None) -> str:
        """The whole result as JSON text, for `from_json`. Raises `DocumentError` if the output has no JSON form."""
        agreement = self.agreement and replace(self.agreement, outputs=())
        fields = _FORMAT.fields(replace(cast('Result', self), output=None, agreement=agreement))
        fields['output'] = pack_output(self.output)
        if self.agreement is not None:
            fields['agreement_outputs'] = [pack_output(output) for output in self.agreement.outputs]
        return _FORMAT.write(fields, indent)

    @overload
    @staticmethod
    def from_json(text: str | bytes, *, output_type: type[T]) -> 'Result[T]': ...

    @overload
    @staticmethod
    def from_json(text: str | bytes, *, output_type: Any = None) -> 'Result': ...

    @staticmethod
    def from_json(text: str | bytes, *, output_type: Any = None) -> 'Result':
        """The result that `to_json` was given, with its output as `output_type`. Raises `DocumentError`.

        Args:
            text: JSON of `to_json`, also of an older version.
            output_type: type of the output, as given to the agent; None for plain data.
        """
        fields = _FORMAT.read(text)
        output, outputs = fields.pop('output', None), fields.pop('agreement_outputs', None)
        result = _FORMAT.decode({**fields, 'output': None})
        if result.agreement is not None and isinstance(outputs, list):
            read = tuple(read_output(each, output_type) for each in outputs)
            result = replace(result, agreement=replace(result.agreement, outputs=read))
        return replace(result, output=read_output(output, output_type)) if result.ended == 'answer' else result


RESULT_FIELDS = DataclassCodec(Result)
_FORMAT = DocumentFormat('result', 1, RESULT_FIELDS, lists=('steps', 'messages', 'waiting'))
