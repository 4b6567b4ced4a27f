"""What the model sees of a cell: output, value, error with its lines, new variables, files, tool logs."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from habilis.agent.context.prompt import listed_names
from habilis.agent.context.truncation import Bounds, truncate
from habilis.sandbox import ToolCall
from habilis.sandbox.contract import Cell, Variable
from habilis.sandbox.guest.hints import for_model


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The text for the model, and the full texts that were truncated."""

    text: str
    kept: Mapping[str, str]
    """Full texts to set as variables in the sandbox, by the name that the model is told."""


def observe(
    cell: Cell,
    *,
    number: int,
    bounds: Bounds,
    taken: Container[str] = (),
    new: Sequence[Variable] = (),
    calls: Sequence[ToolCall] = (),
    note: str = '',
) -> Observation:
    """Build the observation, each part within its bounds. Variables that are `taken` are not overwritten."""
    kept: dict[str, str] = {}
    parts: list[str] = []
    for title, name, text in (
        ('Output', 'output', cell.stdout),
        ('Standard error', 'errors', cell.stderr),
        ('Value', 'value', cell.text or ''),
    ):
        if text.strip():
            variable = _free_name(f'{name}_{number}', taken)
            shown = truncate(text.rstrip('\n'), bounds, where=f'the whole is in the variable {variable}')
            if shown.is_truncated:
                kept[variable] = text
            parts.append(f'{title}:\n{shown.text}')
    if cell.error is not None:
        trace = for_model(cell.error.traceback.strip()) or str(cell.error)
        parts.append(f'Error:\n{truncate(trace, bounds).text}')
    if cell.lost:
        parts.append(truncate(f'These variables were lost: {listed_names(list(cell.lost))}', bounds).text)
    if log := tool_log(calls, bounds):
        parts.append(log)
    if cell.files:
        listed = [f'{file.path} ({file.change}, {file.size:,} bytes)' for file in cell.files]
        parts.append(truncate(f'Files: {listed_names(listed)}', bounds).text)
    if images := sum(display.mime.startswith('image/') for display in cell.displays):
        parts.append(f'Displayed to the user: {images} {"image" if images == 1 else "images"}')
    if new:
        parts.append(
            truncate(f'New variables: {listed_names([describe_variable(variable) for variable in new])}', bounds).text
        )
    if not parts:
        parts.append('The code ran without an error and printed nothing.')
    if note:
        parts.append(note)
    return Observation(text='\n'.join(parts), kept=kept)


def tool_log(calls: Sequence[ToolCall], bounds: Bounds) -> str:
    """Log lines of tools, and errors that were not raised as exceptions."""
    lines = [f'{call.tool}: {line}' for call in calls for line in call.log]
    lines += [f'{call.tool} failed and returned None: {call.error}' for call in calls if call.hidden]
    notes = '\n'.join(lines)
    return f'Tool log:\n{truncate(notes, bounds).text}' if notes else ''


def _free_name(name: str, taken: Container[str]) -> str:
    """The name, or the first of `name_2`, `name_3`, … that is free."""
    if name not in taken:
        return name
    return next(other for number in count(2) if (other := f'{name}_{number}') not in taken)


def describe_variable(variable: Variable) -> str:
    """`name = value` where that is short, else `name (type, size)`."""
    if variable.text:
        return f'{variable.name} = {variable.text}'
    return f'{variable.name} ({variable.type}{", " + variable.size if variable.size else ""})'
