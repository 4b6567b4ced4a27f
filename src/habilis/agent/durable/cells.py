"""`CellOutcome`: the record of one cell."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from habilis.agent.durable.codecs import DataCodec
from habilis.agent.policies import SeenCell, Verdict
from habilis.sandbox import ToolCall
from habilis.sandbox.contract import Cell, Variable


@dataclass(frozen=True, kw_only=True)
class CellOutcome:
    """Everything the run needs to know of one cell, so that a replay need not run it again."""

    code: str
    cell: Cell
    calls: tuple[ToolCall, ...] = ()
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
        return SeenCell(code=self.code, cell=self.cell, calls=self.calls, is_answer=self.answered)


CELL_OUTCOME = DataCodec(CellOutcome, what='a cell')
