"""JSON schemas as type hints: what a schema allows passes, and arrives unchanged."""

import json
from typing import Any

import hypothesis.strategies as st
import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from mcp_types import Tool as ListedTool

from habilis.tools.mcp.remote_tools import read_tool
from habilis.tools.mcp.schemas import SchemaRefused, SchemaTypes, identifier
from habilis.tools.stubs import TypeNames
from habilis.tools.tool import AnyTool
from tests.cases import each_case

KEYS = st.sampled_from(['a', 'b-c', 'class', 'größe', '1st', 'x y'])
TEXT = st.text(st.characters(codec='utf-8', exclude_categories=['Cs']), max_size=5)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    'string': TEXT,
    'integer': st.integers(-(2**60), 2**60),
    'number': st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False),
    'boolean': st.booleans(),
    'null': st.none(),
}
Pair = tuple[dict[str, Any], st.SearchStrategy[Any]]
"""A schema, and values that it allows."""


def _scalar() -> st.SearchStrategy[Pair]:
    plain = st.sampled_from(sorted(SCALARS)).map(lambda kind: ({'type': kind}, SCALARS[kind]))
    values = st.lists(TEXT | st.integers(0, 3) | st.none() | st.booleans(), min_size=1, max_size=3)
    enums = values.map(lambda found: ({'enum': found}, st.sampled_from(found)))
    several = st.lists(st.sampled_from(sorted(SCALARS)), min_size=1, max_size=3, unique=True).map(
        lambda kinds: ({'type': kinds}, st.one_of([SCALARS[kind] for kind in kinds]))
    )
    anything: Pair = ({}, TEXT | st.integers(0, 9) | st.lists(st.booleans(), max_size=2))
    return plain | enums | several | st.just(anything)


def _list(inner: Pair) -> Pair:
    return {'type': 'array', 'items': inner[0]}, st.lists(inner[1], max_size=3)


def _object(fields: dict[str, Pair], required: set[str], is_closed: bool, title: str) -> Pair:
    schema = {
        'type': 'object',
        'title': title,
        'properties': {key: schema for key, (schema, _) in fields.items()},
        'required': sorted(required & fields.keys()),
        **({'additionalProperties': False} if is_closed else {}),
    }
    none: st.SearchStrategy[dict[str, int]] = st.just({})
    more = none if is_closed or not fields else st.dictionaries(st.just('more'), st.integers(), max_size=1)
    known = st.fixed_dictionaries(
        {key: values for key, (_, values) in fields.items() if key in required},
        optional={key: values for key, (_, values) in fields.items() if key not in required},
    )
    return schema, st.tuples(known, more).map(lambda both: {**both[1], **both[0]})


def _union(members: list[Pair], key: str) -> Pair:
    return {key: [schema for schema, _ in members]}, st.one_of([values for _, values in members])


def _nested(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    fields = st.dictionaries(KEYS, inner, max_size=3)
    objects = st.builds(_object, fields, st.sets(KEYS), st.booleans(), st.sampled_from(['Place', 'a b', '']))
    unions = st.builds(_union, st.lists(inner, min_size=1, max_size=3), st.just('anyOf'))
    dicts = inner.map(
        lambda one: ({'type': 'object', 'additionalProperties': one[0]}, st.dictionaries(TEXT, one[1], max_size=2))
    )
    return inner.map(_list) | objects | unions | dicts


PAIRS = st.recursive(_scalar(), _nested, max_leaves=8)


def _tool(schema: dict[str, Any]) -> tuple[AnyTool, list[dict[str, Any]]]:
    """A tool of a schema, and what it sends."""
    remote = read_tool(ListedTool(name='f', input_schema=schema), {})
    sent: list[dict[str, Any]] = []

    async def call(*args: object, **kwargs: object) -> str:
        sent.append(remote.arguments(args, kwargs))
        return ''

    call.__signature__ = remote.signature  # pyright: ignore[reportFunctionMemberAccess]
    call.__annotations__ = {name: one.annotation for name, one in remote.signature.parameters.items()}
    return AnyTool(call, name='f'), sent


@given(pair=PAIRS, data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
async def test_a_value_that_the_schema_allows_passes_and_arrives_unchanged(pair: Pair, data: st.DataObject) -> None:
    schema, values = pair
    value = data.draw(values)
    whole = {'type': 'object', 'properties': {'b-c': schema}, 'required': ['b-c'], '$defs': {'X': schema}}
    jsonschema.validate({'b-c': value}, whole)
    for one in (whole, {**whole, 'properties': {'b-c': {'$ref': '#/$defs/X'}}}):
        made, sent = _tool(one)
        compile(made.stub.replace('Any', 'object'), 'stub', 'exec')
        await made.invoke((value,))
        assert json.dumps(sent, sort_keys=True) == json.dumps([{'b-c': value}], sort_keys=True), made.stub


def _text(schema: dict[str, Any]) -> str:
    return TypeNames().text(SchemaTypes(schema).hint(schema))


HINTS: list[tuple[dict[str, Any], str]] = [
    ({'type': 'number'}, 'int | float'),
    ({'enum': ['a', 1, None]}, "Literal['a', 1, None]"),
    ({'const': 'x'}, "Literal['x']"),
    ({'type': ['string', 'null']}, 'str | None'),
    ({'type': 'string', 'nullable': True}, 'str | None'),
    ({'anyOf': [{'type': 'integer'}, {'type': 'null'}]}, 'int | None'),
    ({'allOf': [{'type': 'integer'}, {'minimum': 3}]}, 'int'),
    ({'type': 'array', 'prefixItems': [{'type': 'string'}], 'items': {'type': 'integer'}}, 'list[str | int]'),
    ({'type': 'object', 'additionalProperties': {'type': 'integer'}}, 'dict[str, int]'),
    ({'type': 'object'}, 'dict[str, Any]'),
    ({}, 'Any'),
    ({'enum': [0.5, {}]}, 'float | dict'),
]


@each_case('schema, hint', HINTS)
def test_hints_say_what_a_schema_says(schema: dict[str, Any], hint: str) -> None:
    assert _text(schema) == hint


NODE = {'type': 'object', 'properties': {'next': {'$ref': '#/$defs/Node'}}}


@each_case(
    'schema, reason',
    [
        ({'$ref': '#/$defs/Node', '$defs': {'Node': NODE}}, '#/$defs/Node refers to itself'),
        ({'$ref': '#'}, '# refers to itself'),
        ({'$ref': 'https://example.com/x.json'}, 'another document'),
        ({'$ref': '#/$defs/Gone'}, 'there is no #/$defs/Gone'),
        ({'type': 'date'}, 'unknown type "date"'),
        ({'allOf': [{'type': 'string'}, {'type': 'object'}]}, 'at once'),
        ({'enum': []}, 'without values'),
        ({'$dynamicRef': '#x'}, '$dynamicRef'),
        ({'type': 'array', 'items': False, 'prefixItems': [False]}, 'no value fits'),
    ],
)
def test_what_cannot_be_shown_is_refused_with_the_reason(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(SchemaRefused) as error:
        SchemaTypes(schema).hint(schema)
    assert reason in str(error.value)


def test_a_tool_with_a_huge_schema_is_refused() -> None:
    with pytest.raises(SchemaRefused, match='larger than'):
        read_tool(ListedTool(name='big', input_schema={'type': 'object', 'title': 'x' * 200_000}), {})


async def test_parameters_have_defaults_and_names_that_python_accepts() -> None:
    schema = {
        'type': 'object',
        'properties': {
            'limit': {'type': 'integer', 'default': 5},
            'repo-path': {'type': 'string'},
            'repo_path': {'type': 'string'},
            'class': {'type': 'string'},
            'tag': {'type': ['string', 'null']},
        },
        'required': ['repo-path'],
    }
    made, sent = _tool(schema)
    signature = '(repo_path: str, limit: int = 5, repo_path2: str | None = None, class_: str | None = None, '
    assert made.signature == f'{signature}tag: str | None = None) -> str'
    await made.invoke(('here',))
    await made.invoke((), {'repo_path': 'here', 'class_': None, 'tag': None})
    await made.invoke(('here', 7), {'class_': 'x', 'repo_path2': 'y'})
    assert sent == [
        {'repo-path': 'here'},
        {'repo-path': 'here', 'tag': None},
        {'repo-path': 'here', 'limit': 7, 'class': 'x', 'repo_path': 'y'},
    ]


@each_case(
    'name, taken, made',
    [
        ('get-time', (), 'get_time'),
        ('get-time', ('get_time',), 'get_time2'),
        ('1st', (), '_1st'),
        ('class', (), 'class_'),
        ('💥', (), 'value'),
    ],
)
def test_names_become_identifiers_of_their_own(name: str, taken: tuple[str, ...], made: str) -> None:
    assert identifier(name, taken) == made
