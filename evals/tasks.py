"""The tasks of `tasks.toml` and `held_out.toml`, the data and tools that they speak of, and the check of an answer."""

import json
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast


@dataclass(frozen=True, kw_only=True)
class Task:
    """One question and the one right answer."""

    id: str
    category: str
    text: str
    expected: object
    kind: Any = None
    """The type of the answer, given to frameworks that can check one."""

    variables: Mapping[str, object] = field(default_factory=dict[str, object])
    tools: tuple[Callable[..., Any], ...] = ()

    def solved_by(self, answer: object) -> bool:
        """Whether the answer is the right one; the digits of a float may differ at the end."""
        return same(answer, self.expected)


def same(answer: object, expected: object) -> bool:
    """Equal as values. Text that writes out a value counts as that value, whitespace around it does not."""
    if isinstance(expected, str):
        return isinstance(answer, str) and answer.strip().strip('\'"').strip() == expected
    if isinstance(answer, str):
        try:
            answer = json.loads(answer.strip().replace("'", '"'))
        except (ValueError, RecursionError):
            return False
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


def _each_same(answers: Sequence[object], expected: Sequence[object]) -> bool:
    return len(answers) == len(expected) and all(map(same, answers, expected))


def _close(answer: float, expected: float) -> bool:
    try:
        return math.isclose(answer, expected, rel_tol=1e-9, abs_tol=1e-9)
    except OverflowError:  # an integer that no float can hold
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


KINDS: dict[str, Any] = {'int': int, 'float': float, 'str': str, 'bool': bool, 'list': list, 'dict': dict}
VARIABLES: dict[str, object] = {'sales': SALES, 'people': PEOPLE}
TOOLS = {tool.__name__: tool for tool in (unit_price, in_stock, exchange_rate, distance_km, temperature)}


def load_tasks(name: str) -> tuple[Task, ...]:
    """All tasks of a file, in its order."""
    with Path(__file__).with_name(name).open('rb') as file:
        rows = tomllib.load(file)['task']
    return tuple(
        Task(
            id=row['id'],
            category=row['category'],
            text=row['text'],
            expected=row['expected'],
            kind=KINDS[row['kind']],
            variables={name: VARIABLES[name] for name in row.get('variables', ())},
            tools=tuple(TOOLS[name] for name in row.get('tools', ())),
        )
        for row in rows
    )


TASKS = load_tasks('tasks.toml')
HELD_OUT = load_tasks('held_out.toml')
"""Not looked at while the agent is improved."""
