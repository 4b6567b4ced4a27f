"""What the model sees of a cell: output, value, error with its lines, new variables, files, and what tools logged."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from habilis.agent.context.truncation import Bounds, cut
from habilis.sandbox.contract import Cell, Variable
from habilis.sandbox import ToolCall

MAX_LISTED = 12
"""So many variables or files are named; of more, the number."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The text for the model, and what has to be kept in the sandbox because the text is too long for it."""

    text: str
    kept: Mapping[str, str]
    """Texts to put into the sandbox, by the name the model is told."""


def observe(
    cell: Cell,
    *,
    number: int,
    bounds: Bounds,
    taken: Container[str] = (),
    new: Sequence[Variable] = (),
    calls: Sequence[ToolCall] = (),
    hints: Sequence[str] = (),
) -> Observation:
    """Put it together, each part within its bounds. Names that are `taken` already stay as they are."""
    kept: dict[str, str] = {}
    parts: list[str] = []
    for title, name, text in (
        ('Output', 'output', cell.stdout),
        ('Standard error', 'errors', cell.stderr),
        ('Value', 'value', cell.text or ''),
    ):
        if text.strip():
            variable = _free(f'{name}_{number}', taken)
            shown = cut(text.rstrip('\n'), bounds, where=f'the whole is in the variable {variable}')
            if shown.cut:
                kept[variable] = text
            parts.append(f'{title}:\n{shown.text}')
    if cell.error is not None:
        trace = cell.error.traceback.strip() or str(cell.error)
        parts.append(f'Error:\n{cut(trace, bounds).text}')
    if cell.lost:
        parts.append(cut(f'These variables are gone: {_listed(list(cell.lost))}', bounds).text)
    if log := tool_log(calls, bounds):
        parts.append(log)
    if cell.files:
        listed = [f'{file.path} ({file.change}, {file.size:,} bytes)' for file in cell.files]
        parts.append(cut(f'Files: {_listed(listed)}', bounds).text)
    if new:
        parts.append(cut(f'New variables: {_listed([described(variable) for variable in new])}', bounds).text)
    if not parts:
        parts.append('The code ran without an error and printed nothing.')
    parts += hints
    return Observation(text='\n'.join(parts), kept=kept)


def tool_log(calls: Sequence[ToolCall], bounds: Bounds) -> str:
    """What the caller cannot see by itself: what tools logged, and errors it was not given as exceptions."""
    lines = [f'{call.name}: {line}' for call in calls for line in call.log]
    lines += [f'{call.name} failed and returned None: {call.error}' for call in calls if call.hidden]
    notes = '\n'.join(lines)
    return f'Tool log:\n{cut(notes, bounds).text}' if notes else ''


def _free(name: str, taken: Container[str]) -> str:
    """The name, or the first of `name_2`, `name_3`, … that nothing has."""
    if name not in taken:
        return name
    return next(other for number in count(2) if (other := f'{name}_{number}') not in taken)


def described(variable: Variable) -> str:
    """As `name = value` where that is short, else as `name (type, size)`."""
    if variable.text:
        return f'{variable.name} = {variable.text}'
    return f'{variable.name} ({variable.type}{", " + variable.size if variable.size else ""})'


def _listed(items: list[str]) -> str:
    more = len(items) - MAX_LISTED
    return ', '.join(items[:MAX_LISTED]) + (f' and {more} more' if more > 0 else '')
