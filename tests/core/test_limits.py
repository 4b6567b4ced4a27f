"""Limits are checked when they are written down, not when they are reached."""

import math
from typing import Any

import pytest

from habilis import Limits
from tests.cases import each_case


@each_case(
    ('field', 'value'),
    [
        ('seconds', 0),
        ('seconds', -1),
        ('seconds', math.inf),
        ('seconds', math.nan),
        ('memory_mb', 47),
        ('memory_mb', 4097),
        ('output_bytes', -1),
        ('calls', -1),
        ('cpu', 0),
        ('cpu', 1.01),
        ('cpu', math.nan),
    ],
)
def test_a_bound_that_makes_no_sense_is_refused_by_name(field: str, value: float) -> None:
    settings: dict[str, Any] = {field: value}
    with pytest.raises(ValueError, match=rf'Limits\.{field} must be .*, not {value!r}'):
        Limits(**settings)


def test_the_edges_are_allowed() -> None:
    assert Limits(seconds=0.001, memory_mb=48, output_bytes=0, calls=0, cpu=1) == Limits(
        seconds=0.001, memory_mb=48, output_bytes=0, calls=0
    )
