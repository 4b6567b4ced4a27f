"""Sums tokens, cost and time of model requests."""

from pathlib import Path
from typing import TYPE_CHECKING

from habilis.agent.events import AgentEvent, ModelReplied
from habilis.models.contract import Usage
from habilis.models.usage import Ledger

if TYPE_CHECKING:
    from rich.table import Table


class TokenTracker:
    """Sums requests, tokens, cost and seconds, by model and by agent.

    One tracker may be used for several agents and runs.
    """

    def __init__(self) -> None:
        self.ledger = Ledger()
        """One entry per request."""

    def __call__(self, event: AgentEvent) -> None:
        """Record the usage of a reply."""
        if isinstance(event, ModelReplied):
            reply = event.reply
            self.ledger.record(reply.model, reply.usage, agent=event.agent, at=event.at)

    @property
    def total(self) -> Usage:
        """Usage of all requests."""
        return self.ledger.total

    @property
    def by_model(self) -> dict[str, Usage]:
        """Usage by model."""
        return self.ledger.by_model()

    @property
    def by_agent(self) -> dict[str, Usage]:
        """Usage by agent."""
        return self.ledger.by_agent()

    def export(self, path: str | Path) -> None:
        """Write totals and entries to a `.json` or `.csv` file."""
        self.ledger.export(path)

    def table(self) -> 'Table':
        """A table for the terminal: `rich.print(tracker.table())`."""
        from rich.table import Table
        from rich.text import Text

        table = Table(show_footer=True)
        sums = self._by_agent_and_model()
        total = _cells(self.total)
        table.add_column('agent', footer='total', overflow='fold')
        table.add_column('model', overflow='fold')
        for name, foot in zip(_COLUMNS, total, strict=True):
            table.add_column(name, footer=foot, justify='right')
        for (agent, model), usage in sums.items():
            table.add_row(Text(agent), Text(model), *_cells(usage))  # `Text`: names must not be parsed as markup
        return table

    def _by_agent_and_model(self) -> dict[tuple[str, str], Usage]:
        sums: dict[tuple[str, str], Usage] = {}
        for entry in self.ledger.entries:
            key = (entry.agent, entry.model)
            sums[key] = sums.get(key, Usage()) + entry.usage
        return sums


_COLUMNS = ('requests', 'input', 'cached', 'output', 'seconds', 'cost')


def _cells(usage: Usage) -> tuple[str, ...]:
    counts = (usage.requests, usage.input_tokens, usage.cached_tokens, usage.output_tokens)
    return (*(f'{count:,}' for count in counts), f'{usage.seconds:,.1f}', format_cost(usage.cost))


def format_cost(cost: float | None) -> str:
    """A cost in US dollars; `–` if the price is unknown."""
    if cost is None:
        return '–'
    return f'${cost:,.2f}' if cost >= 1 or not cost else f'${cost:.4f}'
