"""A task, the check of an answer, and the data and tools of our own tasks. Imports only the standard library."""

import ast
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast


@dataclass(frozen=True, kw_only=True)
class Task:
    """One question, with the expected answer or with tests for the function that is to be written."""

    id: str
    set: str
    category: str
    text: str
    expected: object = None
    """The answer; unused if there are tests."""

    tests: tuple[str, ...] = ()
    """Python statements that must run without an error after the solution."""

    kind: Any = None
    """Type of the answer, for frameworks that validate it."""

    variables: Mapping[str, object] = field(default_factory=dict[str, object])
    tools: tuple[Callable[..., Any], ...] = ()

    def accepts(self, answer: object) -> bool:
        """Whether the answer equals the expected one. In a sentence, the last number counts."""
        if isinstance(answer, str) and isinstance(self.expected, int | float) and not isinstance(self.expected, bool):
            answer = last_number(answer)
        return same(answer, self.expected)


def last_number(text: str) -> float | None:
    """The last number in a text, with or without commas between thousands; None if there is none."""
    numbers = re.findall(r'-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?', text)
    return float(numbers[-1].replace(',', '')) if numbers else None


def same(answer: object, expected: object) -> bool:
    """Whether two values are equal; floats may differ in the last digits, text is read as the value it spells."""
    if isinstance(expected, str):
        return isinstance(answer, str) and answer.strip().strip('\'"').strip() == expected
    if isinstance(answer, str):
        answer = _parse(answer.strip())
    if isinstance(expected, bool) or isinstance(answer, bool):
        return answer is expected
    if isinstance(expected, int | float):
        return isinstance(answer, int | float) and (answer == expected or _close(answer, expected))
    if isinstance(expected, list):
        wanted = cast('list[object]', expected)
        return isinstance(answer, list | tuple) and _each_same(cast('Sequence[object]', answer), wanted)
    if isinstance(expected, dict):
        entries = cast('dict[object, object]', expected)
        found = cast('dict[object, object]', answer) if isinstance(answer, dict) else {}
        return found.keys() == entries.keys() and _each_same([found[key] for key in entries], list(entries.values()))
    return answer == expected


def _parse(text: str) -> object:
    """A value written as JSON or as a Python literal; None if it is neither."""
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    return None


def _each_same(answers: Sequence[object], expected: Sequence[object]) -> bool:
    return len(answers) == len(expected) and all(map(same, answers, expected))


def _close(answer: float, expected: float) -> bool:
    try:
        return math.isclose(answer, expected, rel_tol=1e-9, abs_tol=1e-9)
    except OverflowError:  # an integer too large for a float
        return False


SALES = """date,region,units,price
2024-01-05,north,12,9.5
2024-01-09,south,7,11.0
2024-01-12,north,3,9.5
2024-02-02,east,20,8.25
2024-02-14,south,15,11.0
2024-03-01,north,8,10.0
2024-03-09,east,5,8.25
"""
PEOPLE = """[{"name": "Ana", "age": 34, "city": "Lisbon", "langs": ["pt", "en"]},
 {"name": "Bo", "age": 27, "city": "Oslo", "langs": ["no", "en", "de"]},
 {"name": "Cem", "age": 41, "city": "Lisbon", "langs": ["tr"]},
 {"name": "Dia", "age": 27, "city": "Rome", "langs": ["it", "en"]}]"""
STOCK = {'bolts': 120, 'nuts': 80, 'gears': 15, 'belts': 42}
PRICES = {'tea': 3.2, 'coffee': 4.5, 'cake': 5.75}


def unit_price(product: str) -> float:
    """The price of one piece of a product (tea, coffee or cake), in euros."""
    return PRICES[product]


def in_stock(part: str) -> int:
    """How many pieces of a part are in stock. Parts: bolts, nuts, gears, belts."""
    return STOCK[part]


def exchange_rate(source: str, target: str) -> float:
    """How much one unit of the source currency is worth in the target currency (EUR, USD or JPY)."""
    worth = {'EUR': 1.0, 'USD': 0.8, 'JPY': 0.00625}
    return worth[source] / worth[target]


def distance_km(origin: str, destination: str) -> int:
    """The distance between two cities in kilometres. Cities: Bern, Basel, Chur, Thun."""
    table = {('Bern', 'Basel'): 100, ('Bern', 'Chur'): 240, ('Bern', 'Thun'): 30, ('Basel', 'Chur'): 205}
    return table.get((origin, destination)) or table[destination, origin]


def temperature(city: str, hour: int) -> float:
    """The temperature in a city at an hour of today (0 to 23), in degrees Celsius."""
    return {'Bern': 8.0, 'Rome': 14.5}[city] + 6 * math.sin((hour - 8) * math.pi / 12)


VARIABLES: dict[str, object] = {'sales': SALES, 'people': PEOPLE}
TOOLS = {tool.__name__: tool for tool in (unit_price, in_stock, exchange_rate, distance_km, temperature)}
