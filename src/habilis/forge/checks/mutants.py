"""Wrong variants of a function: each has one small change, which good tests notice."""

import ast
import copy
from collections.abc import Iterator

from habilis.core.narrowing import is_list
from habilis.core.syntax import parse_expression, parse_module
from habilis.forge.contract import Mutant

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}


def mutants(code: str, *, limit: int = 50) -> list[Mutant]:
    """Variants of a module, spread evenly over its changes if there are more than `limit`. Raises `SyntaxError`."""
    tree = parse_module(code)
    skipped = {id(node) for node in _untouched(tree)}
    parents = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    sites = [node for node in ast.walk(tree) if id(node) not in skipped]
    found = [(node, new) for node in sites for new in _variants(node)]
    if len(found) > limit:
        found = [found[index * len(found) // limit] for index in range(limit)]
    unchanged, made = ast.unparse(tree), list[Mutant]()
    for node, new in found:
        variant = _with_change(tree, parents[id(node)], node, new)
        if variant != unchanged:
            before, after = (' '.join(ast.unparse(item).split())[:60] for item in (node, new))
            change = f'line {getattr(node, "lineno", 0)}: {before} → {after}'
            probe = _fails_at_boundary(node)
            boundary = _with_change(tree, parents[id(node)], node, probe) if probe else ''
            made.append(Mutant(change=change, code=variant, boundary=boundary))
    return made


def _fails_at_boundary(node: ast.AST) -> ast.AST | None:
    match node:
        case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()], comparators=[right]):
            is_equal = ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])
            failure = parse_expression('1 / 0').body
            return ast.IfExp(test=is_equal, body=failure, orelse=node)
        case _:
            return None


def _untouched(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes whose change would not be a wrong function: docstrings, annotations, imports, messages."""
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # docstrings
            parts.append(node)
        if isinstance(node, ast.If) and '__name__' in ast.dump(node.test):  # never runs in an imported module
            parts.append(node)
        if isinstance(node, ast.Assert):
            parts.append(node.msg)
        if isinstance(node, ast.keyword) and node.arg == 'strict':  # of zip: a check of the caller, not a result
            parts.append(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == 'isinstance':
            parts += node.args[1:]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts += [node.returns, *node.decorator_list]
        if isinstance(node, ast.arg | ast.AnnAssign):
            parts.append(node.annotation)
        if isinstance(node, ast.Import | ast.ImportFrom):
            parts.append(node)
        if isinstance(node, ast.Raise):  # the words of a message are not behaviour
            parts += [one for call in ast.walk(node) if isinstance(call, ast.Call) for one in call.args]
        if isinstance(node, ast.JoinedStr):  # its parts cannot stand alone
            parts += [part for part in node.values if isinstance(part, ast.Constant)]
        for part in parts:
            if part is not None:
                yield from ast.walk(part)


def _variants(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(ops=operators):
            for index, operator in enumerate(operators):
                other = _COMPARISONS[type(operator)]()
                yield _changed(node, ops=[*operators[:index], other, *operators[index + 1 :]])
        case ast.BinOp(op=operator) if type(operator) in _ARITHMETIC:
            yield _changed(node, op=_ARITHMETIC[type(operator)]())
        case ast.AugAssign(op=operator):
            yield ast.Pass()
            if type(operator) in _ARITHMETIC:
                yield _changed(node, op=_ARITHMETIC[type(operator)]())
        case ast.BoolOp(op=operator):
            yield _changed(node, op=ast.Or() if isinstance(operator, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=value):
            yield from _other_constants(value)
        case ast.If(test=test) | ast.While(test=test):
            yield _changed(node, test=ast.UnaryOp(op=ast.Not(), operand=test))
        case ast.IfExp(test=test):
            yield _changed(node, test=ast.UnaryOp(op=ast.Not(), operand=test))
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(value=ast.Constant(value=None))
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.comprehension(ifs=[_, *_]):
            yield _changed(node, ifs=[])
        case _:
            return


def _other_constants(value: object) -> Iterator[ast.AST]:
    if isinstance(value, bool):
        yield ast.Constant(value=not value)
    elif isinstance(value, int | float):
        yield ast.Constant(value=value + 1)
    elif isinstance(value, str):
        yield ast.Constant(value='' if value else 'x')


def _changed(node: ast.AST, **fields: object) -> ast.AST:
    twin = copy.copy(node)
    for name, value in fields.items():
        setattr(twin, name, value)
    return twin


def _with_change(tree: ast.AST, parent: ast.AST, node: ast.AST, new: ast.AST) -> str:
    """Source of the tree with this node replaced; the tree itself is as before."""
    _exchange(parent, node, new)
    try:
        return ast.unparse(tree)
    finally:
        _exchange(parent, new, node)


def _exchange(parent: ast.AST, node: ast.AST, new: ast.AST) -> None:
    for name, value in ast.iter_fields(parent):
        if value is node:
            setattr(parent, name, new)
        elif is_list(value):
            setattr(parent, name, [new if item is node else item for item in value])
