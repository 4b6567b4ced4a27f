"""Checks that a pydantic newer than the tested ones is still made strict.

The form of core schemas may change with any minor version, and a rule that no longer finds its place would be lost
without an error. So known wrong values are tried once: a limit on the version would keep other packages from being
installed beside Habilis.
"""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from habilis.core.errors import ToolDefinitionError

TESTED = (2, 14)
"""Minor version of pydantic up to which our tests have run."""


@dataclass
class _Record:
    number: int
    day: datetime.date | None = None


_WRONG: tuple[tuple[object, object, bool], ...] = (
    (list[_Record], [{'number': '1'}], False),
    (dict[str, _Record], {'a': {'number': 1, 'other': 2}}, False),
    (_Record | None, {'number': 1, 'day': 0}, False),
    (tuple[Literal[1], ...], [True], False),
    (set[float], ['1'], False),
    (list[_Record], [_Record(number=True)], True),
)
"""Type hint, a value to refuse, and whether it is a result."""


@cache
def check_pydantic(validate: Callable[[object, object, bool], object]) -> None:
    """Try wrong values with `validate`, unless this pydantic was tested. Raises `ToolDefinitionError`."""
    from pydantic import VERSION, ValidationError
    from pydantic_core import SchemaError

    if tuple(map(int, VERSION.split('.')[:2])) <= TESTED:
        return
    for hint, value, is_result in _WRONG:
        try:
            validate(hint, value, is_result)
        except ValidationError:
            continue
        except SchemaError:
            pass
        limit = f'{TESTED[0]}.{TESTED[1] + 1}'
        msg = f"pydantic {VERSION} would accept wrong arguments of tools: pip install 'pydantic<{limit}'"
        raise ToolDefinitionError(msg)
