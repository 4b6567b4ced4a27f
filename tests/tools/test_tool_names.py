"""Which names a tool may have."""

from typing import Any

import pytest

from habilis.core.errors import ToolDefinitionError
from habilis.tools import tool
from habilis.tools.tool_names import CODE_FUNCTIONS, check_name
from tests.cases import each_case


@each_case('name', ['search', 'todo_write', 'Machine', '_private', 'größe', 'match', 'f1'])
def test_an_ordinary_name_is_fine(name: str) -> None:
    assert check_name(name) == name


@each_case(
    ('name', 'reason'),
    [
        ('json', 'hide the module json'),
        ('random', 'hide the module random'),
        ('print', 'hide print, which Python itself uses'),
        ('__import__', 'hide __import__, which Python itself uses'),
        ('__init__', 'hide __init__, which Python itself uses'),
        ('../../x', 'not a Python identifier'),
        ('a b', 'not a Python identifier'),
        ('a\nb', 'not a Python identifier'),
        ('', 'not a Python identifier'),
        ('1x', 'not a Python identifier'),
        ('class', 'a Python keyword'),
        ('None', 'a Python keyword'),
        ('final_answer', 'the agent uses it'),
        ('stop_execution', 'the agent uses it'),
        ('artifacts', 'the agent uses it'),
        ('<lambda>', 'a lambda has no name'),
        ('ﬁnd', 'normalizes it to another name'),
    ],
)
def test_a_name_that_cannot_work_is_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(ToolDefinitionError, match=reason):
        check_name(name)


def test_a_function_with_such_a_name_needs_another() -> None:
    def json() -> None: ...

    with pytest.raises(ToolDefinitionError, match='hide the module json'):
        tool(json)
    assert tool(name='load_json')(json).name == 'load_json'


def test_a_lambda_is_no_tool_until_it_is_named() -> None:
    with pytest.raises(ToolDefinitionError, match='lambda'):
        tool(lambda: 1)
    assert tool(name='one')(lambda: 1).name == 'one'


@pytest.mark.parametrize('name', CODE_FUNCTIONS)
def test_a_tool_for_the_model_has_no_name_that_means_code(name: str) -> None:
    for side in ('model', 'both'):
        with pytest.raises(ToolDefinitionError, match='use it to run code'):
            tool(name=name, side=side)(lambda: 1)
    assert tool(name=name)(lambda: 1).name == name


def test_a_name_without_its_keyword_is_explained() -> None:
    decorate: Any = tool
    with pytest.raises(ToolDefinitionError, match=r"write @tool\(name='myname'\)"):
        decorate('myname')
