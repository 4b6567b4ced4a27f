"""What the model sees of a cell: output, value, error with its lines, new variables, files, tool logs."""

import ast
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from habilis.agent.context.prompt import listed_names
from habilis.agent.context.truncation import Bounds, truncate
from habilis.agent.parsing.syntax import statements
from habilis.sandbox import ToolCall
from habilis.sandbox.contract import Cell, FileChange, Variable
from habilis.sandbox.guest.hints import for_model
from habilis.tools.toolsets.file_search import SKIPPED

DEFINED_TYPES = frozenset({'type', 'function', 'builtin_function_or_method'})
"""Types of what code imports or defines: the model has just written the name."""

NEW_VARIABLES = 'New variables: '
CHANGED_VARIABLES = 'Changed variables: '

ROLLED_BACK = 'All variables are as before this code; its tool calls and changes of files are not undone.'
"""What is said of `Cell.rolled_back`."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The text for the model, and the full texts that were truncated."""

    text: str
    kept: Mapping[str, str]
    """Full texts to set as variables in the sandbox, by the name that the model is told."""


def observe(
    cell: Cell,
    *,
    code: str = '',
    number: int,
    bounds: Bounds,
    taken: Container[str] = (),
    new: Sequence[Variable] = (),
    known: Container[str] = (),
    hidden: Iterable[str] = (),
    calls: Sequence[ToolCall] = (),
    note: str = '',
) -> Observation:
    """Build the observation, each part within its bounds. Variables that are `taken` are not overwritten; `new` has
    those that are new or changed, the latter `known` before; `hidden` says which tools are now behind variables."""
    parts, kept = _output(cell, number, bounds, taken)
    if cell.error is not None:
        trace = for_model(cell.error.traceback.strip()) or str(cell.error)
        parts.append(f'Error:\n{truncate(trace, bounds).text}')
    if cell.rolled_back:
        parts.append(ROLLED_BACK)
    if cell.lost:
        parts.append(truncate(f'These variables were lost: {listed_names(list(cell.lost))}', bounds).text)
    if log := tool_log(calls, bounds):
        parts.append(log)
    if files := [file for file in cell.files if not _is_cached(file)]:
        listed = [f'{file.path} ({file.change}, {file.size:,} bytes)' for file in files]
        parts.append(truncate(f'Files: {listed_names(listed)}', bounds).text)
    if images := sum(display.mime.startswith('image/') for display in cell.displays):
        parts.append(f'Displayed to the user: {images} {"image" if images == 1 else "images"}')
    unseen = _unseen(new, cell, code)
    for title, is_known in ((NEW_VARIABLES, False), (CHANGED_VARIABLES, True)):
        if told := [describe_variable(variable) for variable in unseen if (variable.name in known) is is_known]:
            parts.append(truncate(f'{title}{listed_names(told)}', bounds).text)
    parts.extend(truncate(line, bounds).text for line in hidden)
    if not parts:
        parts.append('The code ran without an error and printed nothing.')
    if note:
        parts.append(note)
    return Observation(text='\n'.join(parts), kept=kept)


def _output(cell: Cell, number: int, bounds: Bounds, taken: Container[str]) -> tuple[list[str], dict[str, str]]:
    """What the cell has printed and its value; and those that were truncated, by the variable for the whole."""
    parts: list[str] = []
    kept: dict[str, str] = {}
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
    return parts, kept


def _is_cached(file: FileChange) -> bool:
    """Whether a program keeps the file for itself."""
    return any(part in SKIPPED for part in file.path.split('/'))


def _unseen(new: Sequence[Variable], cell: Cell, code: str) -> list[Variable]:
    """The new variables whose values the model has not just seen. It has those of functions, classes and imports."""
    told = [each for each in new if each.name != '_' and each.type not in DEFINED_TYPES]
    if not told:
        return []
    output = f'{cell.stdout}\n{cell.text or ""}'
    body = statements(code) or ()
    whole = {node.id for node in _shown(body) if isinstance(node, ast.Name)} if cell.error is None else set[str]()
    inside = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Expr)]
    parts = {node.id for shown in _shown(inside) for node in ast.walk(shown) if isinstance(node, ast.Name)}

    def is_seen(variable: Variable) -> bool:
        text = variable.text[1:-1] if variable.type == 'str' else variable.text
        return variable.name in parts and text in output if text else variable.name in whole

    return [variable for variable in told if not is_seen(variable)]


def _shown(statements: Sequence[ast.stmt]) -> list[ast.expr]:
    """What these statements print, and the last of them if it is an expression."""
    shown: list[ast.expr] = []
    for number, statement in enumerate(statements, 1):
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Name(id='print'), args=args)):
                shown += args
            case ast.Expr(value=value) if number == len(statements):
                shown.append(value)
            case _:
                pass
    return shown


def describe_hidden_tool(variable: Variable, variables: Container[str]) -> str:
    """What to say of a variable that has the name of a tool."""
    name = variable.name
    tool = f'the tool is `tools.{name}`' if 'tools' not in variables else f'`del {name}` brings the tool back'
    return f'`{name}` is now your {variable.type}; {tool}.'


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
