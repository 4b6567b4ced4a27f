"""One sentence about a cell: what most likely went wrong, or what is missing."""

import ast
import re
from collections.abc import Sequence

from habilis.agent.parsing.syntax import statements
from habilis.agent.policies.contract import SeenCell
from habilis.core.similar_names import similar_names

_UNDEFINED = re.compile(r"name '(\w+)' is not defined")
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")
_NEVER_AWAITED = re.compile(r"coroutine '([^']+)' was never awaited")
_COROUTINE = re.compile(r'<coroutine object (\S+) at ')


def hint_for(seen: SeenCell) -> str:
    """The hint for a cell; empty if its output speaks for itself."""
    cell = seen.cell
    if cell.error is not None:
        return _after_timeout(seen) if cell.error.kind == 'time' else _after_error(seen)
    shown = cell.stdout.strip() or cell.text or ''
    if not_awaited := _not_awaited(seen, shown):
        return not_awaited
    if shown:
        return ''
    if defined := uncalled(seen.code):
        return f'You defined {", ".join(defined)} but did not call it. Call it and print the result.'
    return 'Nothing was printed: print what you need to see.'


def _not_awaited(seen: SeenCell, shown: str = '') -> str:
    """Names a call whose `await` is missing; empty if there is none."""
    if found := _NEVER_AWAITED.search(seen.cell.stderr) or _COROUTINE.search(shown):
        name = found[1].rpartition('.')[2]
        return f'{name} was never awaited: write `await {name}(…)`.'
    if seen.coroutines:
        return f'{seen.coroutines[0]} is a coroutine, and nothing was done yet: put `await` before the call.'
    return ''


def _after_timeout(seen: SeenCell) -> str:
    """What was slow: a tool, waiting, or computing."""
    running = [call.tool for call in seen.calls if call.error == 'CancelledError']
    slowest = max(seen.calls, key=lambda call: call.seconds, default=None)
    if slowest is not None and (running or sum(call.seconds for call in seen.calls) > seen.cell.seconds / 2):
        return f'The tool {running[0] if running else slowest.tool} took too long: ask it for less at once.'
    body = statements(seen.code) or []
    stopped = [part for part in body if seen.cell.error is not None and part.lineno == seen.cell.error.line]
    if seen.cell.waited > seen.cell.seconds / 2 or any(_is_sleep(part) for part in stopped):
        return 'The code was waiting, not computing: wait for less time in one step.'
    functions = [part for part in body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
    if any(isinstance(node, ast.While) for part in (*stopped, *functions) for node in ast.walk(part)):
        return 'If a `while` loop never ends, correct its condition; else use a faster algorithm, or less data.'
    return 'The code took too long: use a faster algorithm, or less data.'


def _is_sleep(statement: ast.stmt) -> bool:
    """Whether it is `sleep(…)`, of any module. Not every sandbox tells the host that it sleeps."""
    called = statement.value.func if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None
    return 'sleep' in (getattr(called, 'id', ''), getattr(called, 'attr', ''))


def _after_error(seen: SeenCell) -> str:
    error = seen.cell.error
    assert error is not None
    if error.type == 'NameError' and (found := _UNDEFINED.search(error.message)):
        return _undefined(found[1], seen, error.traceback)
    if error.type in ('ModuleNotFoundError', 'ImportError') and (found := _NO_MODULE.search(error.message)):
        if there := [name for name in _imported_names(seen.code, found[1]) if name in seen.names]:
            return f'{", ".join(there)} can be used without an import: leave it out.'
        return f'{found[1]} is not installed here: use the standard library.'
    if error.kind == 'syntax':
        return 'Nothing of the code was run. Write all of it again, corrected.'
    if not_awaited := _not_awaited(seen):
        return not_awaited
    return 'That is a coroutine: put `await` before the call.' if "'coroutine'" in error.message else ''


def _imported_names(code: str, module: str) -> list[str]:
    """The module, and what the code imports from it."""
    nodes = [node for statement in statements(code) or () for node in ast.walk(statement)]
    found = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == module]
    return [module, *(alias.name for node in found for alias in node.names)]


def _undefined(name: str, seen: SeenCell, traceback: str) -> str:
    if name in seen.lost:
        return f'{name} was lost when the run was interrupted: it could not be saved. Make it again.'
    near = similar_names(name, list(seen.names), n=3, cutoff=0.5)
    if not near or f"Did you mean: '{near[0]}'?" in traceback:  # Python itself has said so
        return ''
    return f'There is no {name!r}. Did you mean {" or ".join(near)}?'


def uncalled(code: str) -> list[str]:
    """Functions that a cell defines, if defining is all it does."""
    body = statements(code) or []
    idle = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
    if not all(isinstance(node, idle) or _is_docstring(node) for node in body):
        return []
    functions = [node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [function.name for function in functions if not _is_called(function, body)]


def _is_called(function: ast.FunctionDef | ast.AsyncFunctionDef, body: Sequence[ast.stmt]) -> bool:
    """Whether other statements call it; recursion does not count."""
    nodes = (node for statement in body if statement is not function for node in ast.walk(statement))
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function.name
        for node in nodes
    )


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
