"""Two agents on one task: the first makes a plan, the second carries it out."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from habilis.agent.agent import Agent
from habilis.agent.context.output import as_text
from habilis.agent.context.prompt import prompt_file
from habilis.agent.contract import Ended, Result
from habilis.agent.options import check_task
from habilis.models.contract import Usage

T = TypeVar('T')


@dataclass(frozen=True, kw_only=True)
class TeamResult(Generic[T]):
    """What both have done."""

    planned: Result[object]
    """Of the planner; its output is the plan."""

    implemented: Result[T] | None
    """Of the implementer; None if there was no plan to carry out."""

    @property
    def plan(self) -> str | None:
        """In words; None if the planner did not finish."""
        return _text(self.planned.output) if self.planned.ended == 'answer' else None

    @property
    def output(self) -> T | None:
        """The answer of the implementer. None unless `ended` is `answer`."""
        return self.implemented.output if self.implemented else None

    @property
    def ended(self) -> Ended:
        """Why the work stopped: as the last of the two who worked says."""
        return self._last.ended

    @property
    def usage(self) -> Usage:
        """Of both together."""
        return self.planned.usage + (self.implemented.usage if self.implemented else Usage())

    @property
    def seconds(self) -> float:
        """Of both together."""
        return self.planned.seconds + (self.implemented.seconds if self.implemented else 0.0)

    @property
    def scripted(self) -> bool:
        """Whether one of them answered from a script."""
        return self.planned.scripted or self._last.scripted

    @property
    def _last(self) -> Result[object]:
        return self.implemented or self.planned


async def plan_and_implement(planner: Agent, implementer: Agent[T], task: str) -> TeamResult[T]:
    """Let the planner write a plan and the implementer carry it out.

    The planner may be one without Python (`python=False`). If both are given the same `Sandbox`, the implementer finds
    the files and variables that the planner has left there. A planner that does not finish is the end of it.
    """
    check_task(task)
    planned = await planner.run(_filled('plan', task=task))
    if planned.ended != 'answer':
        return TeamResult(planned=planned, implemented=None)
    implemented = await implementer.run(_filled('implement', task=task, plan=_text(planned.output)))
    return TeamResult(planned=planned, implemented=implemented)


def _filled(name: str, **values: str) -> str:
    """A prompt with its places filled in, in one pass: what the user wrote may have braces of its own."""
    text, filled = prompt_file(name), ''
    while text:
        before, opening, rest = text.partition('{')
        place, closing, after = rest.partition('}')
        known = bool(opening and closing and place in values)
        filled += before + (values[place] if known else opening)
        text = after if known else rest
    return filled


def _text(output: object) -> str:
    """A plan as text: a small model may give a list of steps instead."""
    if isinstance(output, (list, tuple)):
        return '\n'.join(f'{number}. {as_text(step)}' for number, step in enumerate(output, 1))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return as_text(output).strip()
