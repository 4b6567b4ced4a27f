"""What is recorded of a cell. Its tool calls have records of their own, to which it refers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from habilis.agent.policies.contract import SeenCell, Verdict
from habilis.core.codec import Json
from habilis.core.dataclass_codec import DataclassCodec
from habilis.core.narrowing import json_object
from habilis.journal import Codec
from habilis.sandbox.contract import Cell, Variable

_CALLS = 'calls'


@dataclass(frozen=True, kw_only=True)
class CellOutcome:
    """Everything the run needs to know of one cell, so that a replay need not run it again."""

    code: str = ''
    cell: Cell
    """Its calls are those of the toolbox, with the paths of their records."""

    observation: str = ''
    verdict: Verdict = field(default_factory=Verdict)
    """What the policy decided about it."""

    variables: Mapping[str, Variable] = field(default_factory=dict[str, Variable])
    """The variables after the cell."""

    answered: bool = False
    answer: object = None
    """What `final_answer` was given, if it was called and the answer was taken."""

    question: str | None = None
    """What a tool needs a person to answer."""

    @property
    def seen(self) -> SeenCell:
        """The cell as the history of a policy has it."""
        return SeenCell(code=self.code, cell=self.cell, calls=self.cell.calls, is_answer=self.answered)


@dataclass(frozen=True, kw_only=True)
class RecordedCell:
    """A cell in the journal."""

    outcome: CellOutcome
    """Read from a record, it has no calls; and no code, if the `opened` record of the cell has it."""

    calls: Sequence[Json] = ()
    """References to its calls, of `CallRecords.refer`."""

    has_code: bool = True
    """Whether the code is part of this record."""


class _CellCodec(Codec[RecordedCell]):
    def __init__(self) -> None:
        super().__init__(what='a cell')
        self._fields = DataclassCodec(CellOutcome)

    def write(self, value: RecordedCell) -> Json:
        """Encode a cell. Raises `NotDurable`."""
        outcome = value.outcome if value.has_code else replace(value.outcome, code='')
        if value.calls:
            outcome = replace(outcome, cell=replace(outcome.cell, calls=()))
        fields = self._fields.encode(outcome)
        return {**json_object(fields), _CALLS: list(value.calls)} if value.calls else fields

    def read(self, written: Json) -> RecordedCell:
        """Decode a cell. Raises `NotDurable`."""
        calls = written.get(_CALLS) if isinstance(written, dict) else None
        return RecordedCell(outcome=self._fields.decode(written), calls=calls if isinstance(calls, list) else ())


CELL_CODEC = _CellCodec()
