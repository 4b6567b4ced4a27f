"""One row of the data that code looks at, instead of all that the task means."""

import ast
import re

from habilis.agent.parsing.syntax import statements
from habilis.agent.signs import nodes_of

SHORTEST = 4
"""Letters of a text that is taken for a value of the data."""

_DAY = re.compile(r'\d{4}-\d\d-\d\d')
_MONTHS = 'January|February|March|April|May|June|July|August|September|October|November|December'
_MONTH = re.compile(rf'\b(?:month|{_MONTHS})\b')  # not of `calendar`, whose names are those of the locale


class Picking:
    """What tells a value that the task means from one that was picked out of its data."""

    def __init__(self, question: str, data: str) -> None:
        self._question = question.casefold()
        self._data = data
        self._about_months = bool(_MONTH.search(question))

    def found(self, code: str) -> list[str]:
        """What the code compares with texts that stand in the data and not in the question."""
        try:
            return [
                ast.unparse(node.left) for node in nodes_of(code) if isinstance(node, ast.Compare) and self.picked(node)
            ]
        except RecursionError:
            return []

    def picked(self, node: ast.Compare) -> str | None:
        """The text, if this compares with such a one."""
        match node:
            case ast.Compare(ops=[ast.Eq()], comparators=[ast.Constant(value=str() as text)]):
                outside = len(text) >= SHORTEST and text in self._data and text.casefold() not in self._question
                return text if outside else None
            case _:
                return None

    def mended(self, code: str) -> str | None:
        """The code with all days of the month for one of them, and without the conditions that nobody asked for."""
        body = statements(code) or []
        mender = _Mender(self, about_months=self._about_months)
        try:
            tree = ast.Module(body=[mender.visit(statement) for statement in body], type_ignores=[])
            return ast.unparse(ast.fix_missing_locations(tree)) if mender.changed and not self._left(tree) else None
        except RecursionError:  # a sum of a thousand terms is a thousand levels deep
            return None

    def _left(self, tree: ast.AST) -> bool:
        return any(isinstance(node, ast.Compare) and self.picked(node) for node in ast.walk(tree))


class _Mender(ast.NodeTransformer):
    def __init__(self, picking: Picking, *, about_months: bool) -> None:
        self._picking = picking
        self._about_months = about_months
        self.changed = False

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.And):
            return node
        kept = [value for value in node.values if not (isinstance(value, ast.Compare) and self._picking.picked(value))]
        if not kept or len(kept) == len(node.values):
            return node
        self.changed = True
        return kept[0] if len(kept) == 1 else ast.BoolOp(op=node.op, values=kept)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        text = self._picking.picked(node)
        if text is None or not self._about_months or not _DAY.fullmatch(text):
            return node
        self.changed = True
        return ast.Call(ast.Attribute(node.left, 'startswith', ast.Load()), [ast.Constant(text[:7])], [])
