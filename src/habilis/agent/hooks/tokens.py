"""Counting what models cost."""

from pathlib import Path
from typing import TYPE_CHECKING

from habilis.core.events import Event
from habilis.models.contract import Reply, Usage
from habilis.models.usage import Ledger

if TYPE_CHECKING:
    from rich.table import Table


class TokenTracker:
    """Adds up requests, tokens, cost and seconds, by model and by agent.

    One tracker may watch several agents, and many runs of each: it has the sum of them all.
    """

    def __init__(self) -> None:
        self.ledger = Ledger()
        """Every call by itself."""

    def __call__(self, event: Event) -> None:
        """Count a reply."""
        if event.kind == 'model_replied' and isinstance(event.data, Reply):
            reply = event.data
            self.ledger.record(reply.model, reply.usage, agent=event.agent, at=event.at)

    @property
    def total(self) -> Usage:
        """Everything together."""
        return self.ledger.total

    @property
    def by_model(self) -> dict[str, Usage]:
        """The total of each model."""
        return self.ledger.by_model()

    @property
    def by_agent(self) -> dict[str, Usage]:
        """The total of each agent."""
        return self.ledger.by_agent()

    def export(self, path: str | Path) -> None:
        """Write it all to a file that ends in `.json` or `.csv`."""
        self.ledger.export(path)

    def table(self) -> 'Table':
        """For a terminal: `rich.print(tracker.table())`."""
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
            table.add_row(Text(agent), Text(model), *_cells(usage))  # `Text`: a name is no markup
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
    return (*(f'{count:,}' for count in counts), f'{usage.seconds:,.1f}', money(usage.cost))


def money(cost: float | None) -> str:
    """US dollars; `–` where no price is known."""
    if cost is None:
        return '–'
    return f'${cost:,.2f}' if cost >= 1 or not cost else f'${cost:.4f}'
