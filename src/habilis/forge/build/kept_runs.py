"""Makes a tool of finished runs that did the same: its code is their cells, with parameters where literals vary.

The answers of the runs are its tests. Of one run alone, those literals become parameters that its task has. Those that
the code has given a name (a variable, or a parameter of a function that it defines and calls) are asked for. The
others, which may belong to a rule that the task states, have defaults.
"""

import ast
import contextlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from habilis.agent.durable.trajectory import Trajectory
from habilis.core.errors import ForgeError
from habilis.core.stems import STOP_WORDS
from habilis.core.syntax import parse_module
from habilis.forge.build.examples import hint_for
from habilis.forge.checks.tables import atoms_in
from habilis.forge.contract import LIBRARY_MODULE, Candidate, Manifest
from habilis.forge.library.additions import add_tool
from habilis.forge.library.library import Library
from habilis.forge.library.source_edits import free_name

_NUMBER = re.compile(r'\d+(?:\.\d+)?')
_MAX_WORDS = 4


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """What a run did, as far as a tool can do it again."""

    run: str
    task: str
    code: str
    answer: object
    is_printed: bool = False
    """Whether the answer is the text that the last cell printed."""


@dataclass(frozen=True, kw_only=True)
class _Literal:
    """A literal of the code: a whole value that is assigned or passed, or a constant elsewhere."""

    node: ast.expr
    value: object
    name: str = ''
    is_passed: bool = False
    """Whether the name is that of a parameter of a function, and not of a variable."""


async def keep_runs(library: Library, runs: Sequence[FinishedRun], *, name: str = '', note: str = '') -> Manifest:
    """Keep what the runs did as a tool, which is tested as one that a person wrote. Raises `ForgeError`."""
    wanted = name or free_name(_name_of(runs[0]), library)
    candidate = candidate_of(runs, wanted, library.names())
    made = await add_tool(library, candidate, note=note, origin='run', request=runs[0].task)
    for one in runs:
        library.usage.record_request(one.task, [wanted], ok=True, run=one.run)
    return made


def finished_run(run: str, trajectory: Trajectory) -> FinishedRun:
    """What a run did. Raises `ForgeError` if its answer was not computed by its last cell."""
    cells = [one for turn in trajectory.turns for one in turn.cells if one.cell.error is None]
    if trajectory.result is None or not cells:
        msg = f'{run} has no answer that was computed by code; only such a run can be kept'
        raise ForgeError(msg)
    code, last = '\n'.join([*trajectory.imports, *(one.code for one in cells)]), cells[-1]
    answer = last.answer if last.answered else last.cell.value
    is_printed = answer is None and bool(last.cell.stdout)
    return FinishedRun(
        run=run,
        task=trajectory.inputs.task,
        code=code,
        answer=last.cell.stdout.strip() if is_printed else answer,
        is_printed=is_printed,
    )


def doing_the_same(runs: Sequence[FinishedRun]) -> list[FinishedRun]:
    """The first of the runs, and those that did the same with other values."""
    same = [runs[0]]
    for other in runs[1:]:
        with contextlib.suppress(ForgeError):
            candidate_of([runs[0], other], 'answer')
            same.append(other)
    return same


def candidate_of(runs: Sequence[FinishedRun], name: str, tools: Sequence[str] = ()) -> Candidate:
    """The code and tests of a tool that does what the runs did. Raises `ForgeError` if they did different things."""
    trees = [_body(one) for one in runs]
    literals = [list(_literals(tree, _functions(tree))) for tree in trees]
    parameters, optional = _parameters(runs, trees, literals)
    needed = [values for key, values in parameters.items() if key not in optional]
    calls = [', '.join(map(repr, values)) for values in zip(*needed, strict=True)]
    result = 'str({})' if runs[0].is_printed else '{}'
    asserts = [f'{result.format(f"{name}({call})")} == {_shown(one)}' for call, one in zip(calls, runs, strict=True)]
    tests = [f'def test_run_{number}() -> None:\n    assert {text}\n' for number, text in enumerate(asserts, start=1)]
    code = _code(name, trees[0], runs, parameters, optional)
    used = sorted(_names_in(trees[0].body) & {*tools})
    imports = ''.join(f'from {LIBRARY_MODULE} import {one}\n' for one in used)
    return Candidate(name=name, code=f'{imports}{code}', tests=f'from tool import {name}\n\n\n' + '\n\n'.join(tests))


def _body(run: FinishedRun) -> ast.Module:
    """The code with `return` for `final_answer`, or for the value or text at its end."""
    tree = _Returning().visit(parse_module(run.code))
    assert isinstance(tree, ast.Module)
    if any(isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith) for node in ast.walk(tree)):
        msg = f'{run.run} waits for something (`await`), which a tool of the library cannot'
        raise ForgeError(msg)
    *before, last = tree.body
    match last:
        case ast.Expr(value=ast.Call(func=ast.Name(id='print'), args=[value], keywords=[])) | ast.Expr(value=value):
            last = ast.Return(value=value)
        case _:
            pass
    tree.body = [*(one for one in before if not _is_print(one)), last]
    return tree


class _Returning(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        match node.value:
            case ast.Call(func=ast.Name(id='final_answer'), args=[value]):
                return ast.Return(value=value)
            case _:
                return node


def _is_print(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(id='print'))):
            return True
        case _:
            return False


def _functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def _literals(tree: ast.AST, functions: Mapping[str, ast.FunctionDef]) -> Iterator[_Literal]:
    """The literals of the code, in the order in which they are written."""
    is_outside = isinstance(tree, ast.Module)
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if (known := _value(value)) is not None:
                yield _Literal(node=value, value=known[0], name=name if is_outside else '')
            case ast.Call(func=ast.Name(id=called), args=[_, *_] as passed) if called in functions:
                for one, parameter in zip(passed, functions[called].args.args, strict=False):
                    if (known := _value(one)) is not None:
                        yield _Literal(node=one, value=known[0], name=parameter.arg, is_passed=True)
                    else:
                        yield from _literals(ast.Expr(one), functions)
            case ast.Constant(value=int() | float() | str() as value) if not isinstance(value, bool):
                yield _Literal(node=node, value=value)
            case ast.JoinedStr(values=parts):
                for part in parts:
                    if not isinstance(part, ast.Constant):  # text of an f-string cannot be replaced by a name
                        yield from _literals(part, functions)
            case _:
                yield from _literals(node, functions)


def _value(node: ast.expr) -> list[object] | None:
    try:
        return [ast.literal_eval(node)]
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _parameters(
    runs: Sequence[FinishedRun], trees: Sequence[ast.Module], literals: Sequence[Sequence[_Literal]]
) -> tuple[dict[str, tuple[object, ...]], set[str]]:
    """The parameters with their values in each run, and those with a default. Their places become names."""
    if len({len(some) for some in literals}) > 1:
        msg = f'{", ".join(one.run for one in runs)} did not do the same'
        raise ForgeError(msg)
    found: dict[str, tuple[object, ...]] = {}
    unnamed: set[str] = set()
    names = _names_in(trees[0].body)
    outside = _names_in([one for one in trees[0].body if not isinstance(one, ast.FunctionDef)])
    for same in zip(*literals, strict=True):
        first, values = same[0], tuple(one.value for one in same)
        varies = len(set(map(repr, values))) > 1 if len(runs) > 1 else _is_in(first.value, runs[0].task)
        if varies:
            known = next((key for key, some in found.items() if not first.name and repr(some) == repr(values)), '')
            taken = outside if first.is_passed else set[str]() if first.name else names
            key = known or free_name(first.name or 'value', {*found, *taken})
            found[key] = values
            unnamed |= set() if first.name or known else {key}
            for one in same:
                _replace(one.node, key)
    if len({ast.dump(tree) for tree in trees}) > 1 or not found:
        problem = 'did not do the same' if found else 'have nothing that varies: name another run with other values'
        msg = f'{", ".join(one.run for one in runs)} {problem}'
        raise ForgeError(msg)
    optional = unnamed if len(runs) == 1 and found.keys() - unnamed else set[str]()
    return dict(sorted(found.items(), key=lambda one: one[0] in optional)), optional


def _names_in(nodes: Sequence[ast.AST]) -> set[str]:
    return {one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)}


def _replace(node: ast.expr, name: str) -> None:
    """Make a name of a node, in place."""
    node.__class__ = ast.Name  # pyright: ignore[reportAttributeAccessIssue]
    node.__dict__.clear()
    node.__dict__.update(id=name, ctx=ast.Load())


def _is_in(value: object, task: str) -> bool:
    """Whether a task has all of a value."""
    numbers = {float(number) for number in _NUMBER.findall(task)}
    parts = list(atoms_in(value))
    return bool(parts) and all(
        re.search(rf'(?<!\w){re.escape(part)}(?!\w)', task) if isinstance(part, str) and part else part in numbers
        for part in parts
    )


def _code(
    name: str,
    tree: ast.Module,
    runs: Sequence[FinishedRun],
    parameters: dict[str, tuple[object, ...]],
    optional: Collection[str],
) -> str:
    defaults = {key: f' = {parameters[key][0]!r}' for key in optional}
    head = ', '.join(
        f'{key}: {ast.unparse(hint_for(values))}{defaults.get(key, "")}' for key, values in parameters.items()
    )
    result = 'object' if runs[0].is_printed else ast.unparse(hint_for([one.answer for one in runs]))
    body = [node for node in tree.body if not _is_itself(node)]
    documentation = ast.Expr(ast.Constant(f'Answer requests such as: {" ".join(runs[0].task.split())[:300]}'))
    lines = ast.unparse(ast.Module(body=[documentation, *body], type_ignores=[])).splitlines()
    return f'def {name}({head}) -> {result}:\n' + ''.join(f'    {line}\n' if line else '\n' for line in lines)


def _is_itself(node: ast.stmt) -> bool:
    """Whether it is `name = name`, as is left of a literal that became a parameter of that name."""
    match node:
        case ast.Assign(targets=[ast.Name(id=target)], value=ast.Name(id=value)):
            return target == value
        case _:
            return False


def _shown(run: FinishedRun) -> str:
    shown = repr(run.answer)
    if (known := _value(ast.parse(shown, mode='eval').body) if run.answer is not None else None) != [run.answer]:
        msg = f'the answer of {run.run} is not plain data that can be compared: {shown[:100]}'
        raise ForgeError(msg)
    assert known is not None
    return shown


def _name_of(run: FinishedRun) -> str:
    """The function that computes the answer, if the run has defined one; else the first words of its task."""
    tree = _body(run)
    for node in ast.walk(tree.body[-1]):
        if isinstance(node, ast.Name) and node.id in _functions(tree):
            return node.id
    words = [word for word in re.findall(r'[a-z]+', run.task.lower()) if word not in STOP_WORDS and len(word) > 1]
    return '_'.join(words[:_MAX_WORDS]) or 'answer'
