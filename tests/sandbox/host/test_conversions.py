"""A variable that is not plain data is refused with the code that makes it so."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest
from pydantic import BaseModel

from habilis import Agent, HabilisError, ScriptedModel
from habilis.core.errors import SandboxError
from habilis.sandbox.host.results import pack_variables
from tests.cases import each_case


class Frame:
    """A table as pandas has it."""

    def to_dict(self, orient: str = 'dict') -> object:
        """One dict per column, or per row."""
        return [{'a': 1}] if orient == 'records' else {'a': {0: 1}}


class Column(Frame):
    """A column of such a table."""

    def tolist(self) -> list[int]:
        """Its values."""
        return [1]


class OtherFrame:
    """A table as polars has it."""

    def to_dict(self, *, as_series: bool = True) -> object:
        """One object per column."""
        return {'a': object() if as_series else [1]}

    def to_dicts(self) -> list[dict[str, int]]:
        """One dict per row."""
        return [{'a': 1}]


class Model(BaseModel):
    """A pydantic model."""

    a: int = 1


@dataclass
class Point:
    """A dataclass."""

    x: int = 1


@each_case(
    ('value', 'code'),
    [
        (np.arange(3), 'x.tolist()'),
        (np.int64(3), 'x.tolist()'),
        ({'a': [1, np.arange(3)]}, "x['a'][1].tolist()"),
        ([{'rows': Frame()}], "x[0]['rows'].to_dict('records')"),
        (Frame(), "x.to_dict('records')"),
        (Column(), 'x.tolist()'),
        (OtherFrame(), 'x.to_dicts()'),
        (Model(), 'x.model_dump()'),
        ([Point()], 'dataclasses.asdict(x[0])'),
    ],
)
def test_the_error_names_the_conversion(value: object, code: str) -> None:
    with pytest.raises(SandboxError) as caught:
        pack_variables({'x': value})
    assert str(caught.value).endswith(f'; pass {code}')
    names: Mapping[str, object] = {'x': value, 'dataclasses': __import__('dataclasses')}
    pack_variables({'x': eval(code, dict(names))})  # the advice is good


@each_case('value', [object(), deque([1]), Frame, print, [{1: object}]])
def test_without_a_conversion_the_error_says_only_what_is_wrong(value: object) -> None:
    words = r"the variable 'x' cannot go into the sandbox: .*is not plain data but an? \w+$"
    with pytest.raises(SandboxError, match=words):
        pack_variables({'x': value})


def test_a_run_refuses_an_array_before_it_starts() -> None:
    with (
        Agent(ScriptedModel([]), journal='off') as agent,
        pytest.raises(HabilisError, match=r'pass prices\.tolist\(\)'),
    ):
        agent.run_sync('Sum them.', variables={'prices': np.arange(3)})
