"""The results of `habilis map`: as JSON lines or Parquet, and a summary."""

import contextlib
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import TextIO

import typer

from habilis.cli.printing import print_table
from habilis.cli.run import report
from habilis.cli.text_files import FileFailed
from habilis.flows.agent_tasks import TaskResult
from habilis.flows.mapping import MapOutcome, MapTask

Write = Callable[[MapOutcome], None]
_ROWS = 1000
"""Rows of a Parquet file that are written at a time."""

_NONE = TaskResult(output=None, ended='')


def row_of(outcome: MapOutcome) -> dict[str, object]:
    """An outcome as a row: the same columns for all of them."""
    task, result = outcome.task, asdict(outcome.result or _NONE)
    row: dict[str, object] = {'number': task.number, 'id': task.id, 'task': task.task, 'run': outcome.run}
    return {**row, **result, 'ended': outcome.ended, 'error': outcome.error}


@contextlib.contextmanager
def results_file(file: str) -> Generator[Write]:
    """Writes outcomes to a file as they come. Raises `FileFailed`, and `BadParameter` without pyarrow."""
    if file.endswith('.parquet'):
        with _parquet(file) as write:
            yield write
    elif file == '-':
        yield lambda outcome: _write_line(sys.stdout, outcome)
    else:
        try:
            opened = open(file, 'w', encoding='utf-8', newline='\n')  # noqa: SIM115 - closed below
        except OSError as error:
            msg = f'cannot write {file}: {error.strerror}'
            raise FileFailed(msg) from None
        with opened:
            yield lambda outcome: _write_line(opened, outcome)


def _write_line(stream: TextIO, outcome: MapOutcome) -> None:
    stream.write(f'{json.dumps(row_of(outcome))}\n')
    stream.flush()


@contextlib.contextmanager
def _parquet(file: str) -> Generator[Write]:
    try:
        pa, parquet = import_module('pyarrow'), import_module('pyarrow.parquet')
    except ImportError:
        msg = 'Parquet needs pyarrow: pip install "habilis[parquet]"'
        raise typer.BadParameter(msg, param_hint='--output') from None
    numbers = {name: pa.int64() for name in ('number', 'steps', 'requests', 'input_tokens', 'output_tokens')}
    kinds = numbers | {'cost': pa.float64(), 'seconds': pa.float64()}
    columns = row_of(MapOutcome(task=MapTask(number=0, task=''), run='', status='failed'))
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in columns])
    rows: list[dict[str, object]] = []
    with parquet.ParquetWriter(file, schema) as writer:

        def flush() -> None:
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))
            rows.clear()

        def write(outcome: MapOutcome) -> None:
            row = row_of(outcome)
            rows.append(row | {'output': json.dumps(row['output'])})  # answers may be of any type
            if len(rows) == _ROWS:
                flush()

        yield write
        flush()


@dataclass(kw_only=True)
class Totals:
    """What the tasks that ended in one way have used."""

    tasks: int = 0
    new: int = 0
    steps: int = 0
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0

    def add(self, outcome: MapOutcome) -> None:
        """Count an outcome."""
        result = outcome.result or _NONE
        self.tasks += 1
        self.new += outcome.is_new and outcome.status != 'not started'
        self.steps += result.steps
        self.tokens += result.input_tokens + result.output_tokens
        self.cost += result.cost or 0.0
        self.seconds += result.seconds

    @property
    def cells(self) -> list[str]:
        """The totals as cells of a table."""
        counts = [f'{number:,}' for number in (self.tasks, self.new, self.steps, self.tokens)]
        return [*counts, f'${self.cost:.4f}' if self.cost else '', f'{self.seconds:,.1f}']


class MapSummary:
    """The totals, by how tasks ended."""

    def __init__(self) -> None:
        self._by_end: dict[str, Totals] = defaultdict(Totals)
        self.all = Totals()

    def add(self, outcome: MapOutcome) -> None:
        """Count an outcome."""
        for totals in (self._by_end[outcome.ended], self.all):
            totals.add(outcome)

    @property
    def text(self) -> str:
        """One line, for progress."""
        others = [f'{totals.tasks:,} {ended}' for ended, totals in self._by_end.items() if ended != 'answer']
        cost = [f'${self.all.cost:.2f}'] if self.all.cost else []
        return ', '.join([f'{self._by_end["answer"].tasks:,} answered', *others, *cost])

    @property
    def exit_code(self) -> int:
        """0 if all tasks have an answer; else that of the worst end."""
        ends = {ended for ended, totals in self._by_end.items() if totals.tasks} - {'answer'}
        if 'failed' in ends:
            return report.FAILED
        if ends & {'waiting', 'question', 'approval'}:
            return report.QUESTION
        return report.LIMIT_REACHED if ends else report.ANSWERED

    def print(self) -> None:
        """Print it to stderr as a table."""
        head = ['ENDED', 'TASKS', 'NEW', 'STEPS', 'TOKENS', 'COST', 'SECONDS']
        rows = [[ended, *totals.cells] for ended, totals in sorted(self._by_end.items()) if totals.tasks]
        print_table(head, [*rows, ['all', *self.all.cells]] if len(rows) > 1 else rows, stderr=True)
