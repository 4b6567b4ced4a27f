"""What code shows of how its answer was found: made up, the first of many, data or numbers that were passed over."""

import ast
import re
from collections.abc import Collection

from habilis.agent.parsing.syntax import statements

MISQUOTED = 12
"""Letters that a text must have in common with the task to be taken for a copy of it."""

_WORDS = re.compile(r'[^\W_]+')
_QUANTITIES = re.compile(r'\b\d{1,9} [a-z]+(?:, \d{1,9} [a-z]+)*,? and \d{1,9} [a-z]+')


def nodes_of(code: str) -> list[ast.AST]:
    """All that the code is made of; nothing if it is no Python."""
    return [node for statement in statements(code) or () for node in ast.walk(statement)]


def guessed(code: str, seen: str) -> str | None:
    """A number that `final_answer` is given as a literal, though the code around it computes something, and that nobody
    has seen: made up before the result was there."""
    nodes = nodes_of(code)
    if not any(_computes(node) for node in nodes):
        return None
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id='final_answer'), args=[ast.Constant(value=int() | float()) as number, *_]):
                text = ast.unparse(number)
                if not isinstance(number.value, bool) and not re.search(
                    rf'(?<![\w.]){re.escape(text)}(?!\w|\.\d)', seen
                ):
                    return text
            case _:
                pass
    return None


def _computes(node: ast.AST) -> bool:
    match node:
        case ast.Assign(value=value) | ast.AugAssign(value=value):
            return any(isinstance(part, ast.Call | ast.BinOp) for part in ast.walk(value))
        case ast.Expr(value=ast.BinOp()):
            return True
        case _:
            return False


def answered_name(code: str) -> str | None:
    """The variable that `final_answer` is given."""
    for node in nodes_of(code):
        match node:
            case ast.Call(func=ast.Name(id='final_answer'), args=[ast.Name(id=name)]):
                return name
            case _:
                pass
    return None


# Loops ----------------------------------------------------------------------------------------------------------------


def answers_in_loop(code: str) -> bool:
    """Whether `final_answer` is called for the first thing that a loop finds."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == 'final_answer'
        for loop in _loops(code)
        for node in loop
    )


def stops_at_first(code: str) -> bool:
    """Whether a loop ends with the first thing that fits, and its value is the answer."""
    name = answered_name(code)
    for loop in _loops(code):
        stored = [node.id for node in loop if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        if name in stored and any(isinstance(node, ast.Break) for node in loop):
            return not any(isinstance(node, ast.AugAssign) for node in loop)
    return False


def _loops(code: str) -> list[list[ast.AST]]:
    return [list(ast.walk(node)) for node in nodes_of(code) if isinstance(node, ast.For | ast.AsyncFor)]


# Data and numbers -----------------------------------------------------------------------------------------------------


def misquoted(code: str, task: str) -> str | None:
    """A text in the code that the task has too, but with its words run together: copied wrongly."""
    letters, words = _letters(task), set(_WORDS.findall(task))
    for node in nodes_of(code):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and any(_is_run_together(word, words, letters) for word in _WORDS.findall(text)):
            return ast.unparse(node)
    return None


def _is_run_together(word: str, words: Collection[str], letters: str) -> bool:
    return len(word) >= MISQUOTED and word not in words and word in letters


def _letters(text: str) -> str:
    return ''.join(letter for letter in text if letter.isalnum())


def quantity_left_out(code: str, question: str) -> tuple[str, str] | None:
    """Quantities that the question lists, and one of them that is not in the code. Where none of them is, that counts
    only for a longer list, and code that puts an answer together."""
    nodes = nodes_of(code)
    numbers = {node.value for node in nodes if isinstance(node, ast.Constant)}
    adds = any(isinstance(node, ast.BinOp) for node in nodes)
    for found in _QUANTITIES.finditer(question):
        counts = [count for count in re.findall(r'\d+', found[0]) if int(count) > 1]
        missing = [count for count in counts if int(count) not in numbers]
        sure = len(missing) < len(counts) or (len(counts) > 1 and ',' in found[0] and adds)
        if missing and sure:
            return found[0], missing[0]
    return None


def compares_with(code: str, number: int) -> bool:
    """Whether code has this number in it, or compares with the one before it."""
    nodes = nodes_of(code)
    compared = [part for node in nodes if isinstance(node, ast.Compare) for part in ast.walk(node)]
    return any(_is_number(node, number) for node in nodes) or any(_is_number(part, number - 1) for part in compared)


def _is_number(node: ast.AST, number: int) -> bool:
    return isinstance(node, ast.Constant) and not isinstance(node.value, bool) and node.value == number
