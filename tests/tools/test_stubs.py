"""What a model reads of tools."""

import ast
import datetime
import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, TypedDict, TypeVar

import pydantic
from hypothesis import given
from hypothesis import strategies as st

from habilis.tools import Toolbox, tool
from habilis.tools.stubs import TypeNames, docstring
from tests.cases import each_case
from tests.tools.signatures import Sample, samples

T = TypeVar('T')
UserId = NewType('UserId', int)


class Color(enum.Enum):
    RED = 'red'
    BLUE = 'blue'


@dataclass
class Hit:
    """A page that was found."""

    url: str
    score: Annotated[float, 'from 0 to 1'] = 0.0
    tags: list[str] = field(default_factory=list[str])


class Page(pydantic.BaseModel):
    """A page."""

    title: str = pydantic.Field(description='as the page says')
    hits: list[Hit] = []
    kind: str = pydantic.Field(alias='type', default='html')


class Settings(TypedDict):
    depth: int
    name: NotRequired[str]


class Pair(NamedTuple):
    left: int
    right: str


class Tree(TypedDict):
    children: 'list[Tree]'


@dataclass
class Box(Generic[T]):
    content: T


def test_a11_a_stub_is_the_function_as_python_text() -> None:
    @tool
    async def search(query: str, limit: int = 5) -> list[str]:
        """Search the web."""
        return [query] * limit

    assert search.stub == ('async def search(query: str, limit: int = 5) -> list[str]:\n    """Search the web."""')


def test_a_signature_over_several_lines_is_one_line() -> None:
    @tool
    def f(
        first: int,  # the first
        second: str = 'a\nb',
        *,
        third: bool = False,
    ) -> None: ...

    assert f.stub == "def f(first: int, second: str = 'a\\nb', *, third: bool = False) -> None:\n    ..."


def test_types_are_explained_once_before_the_functions_that_use_them() -> None:
    @tool
    def find(query: str, color: Color = Color.RED) -> list[Hit]:
        """Find pages."""
        return []

    @tool
    def show(hit: Hit) -> None:
        """Show a page."""

    assert (
        Toolbox([find, show]).stubs()
        == '''\
Color = Literal['red', 'blue']

class Hit(TypedDict):
    """A page that was found."""
    url: str
    score: float  # from 0 to 1; default 0.0
    tags: list[str]  # optional

def find(query: str, color: Color = 'red') -> list[Hit]:
    """Find pages."""

def show(hit: Hit) -> None:
    """Show a page."""'''
    )


def test_a_model_is_shown_with_the_names_and_notes_of_its_fields() -> None:
    @tool
    def read() -> Page:
        raise NotImplementedError

    assert 'class Page(TypedDict):\n    """A page."""\n    title: str  # as the page says\n' in read.stub
    assert "    type: str  # default 'html'\n" in read.stub
    assert read.stub.index('class Hit') < read.stub.index('def read')


def test_what_is_said_of_parameters_follows_the_documentation() -> None:
    @tool
    def f(
        query: Annotated[str, 'what to look for'], size: Annotated[int, pydantic.Field(description='of a page')]
    ) -> None:
        """Search."""

    assert f.stub.endswith('"""Search.\n\n    query: what to look for\n    size: of a page\n    """')


@each_case(
    ('hint', 'text'),
    [
        (int, 'int'),
        (None, 'None'),
        (Any, 'Any'),
        (int | None, 'int | None'),
        (list, 'list'),
        (dict[str, list[int]], 'dict[str, list[int]]'),
        (tuple[int, ...], 'tuple[int, ...]'),
        (tuple[()], 'tuple[()]'),
        (Literal['a', 1, None], "Literal['a', 1, None]"),
        (Literal[Color.RED], "Literal['red']"),
        (Annotated[int, 'note'], 'int'),
        (datetime.datetime, 'datetime'),
        (UserId, 'int'),
        (T, 'Any'),
        (Pair, 'tuple[int, str]'),
        (Color, 'Color'),
        (Settings, 'Settings'),
        (Tree, 'Tree'),
        (Box[int], 'Box'),
        (Path, 'str'),
        (list[PurePosixPath], 'list[str]'),
        (Callable[[int, str], bool], 'Callable[[int, str], bool]'),
        (Callable[..., bool], 'Callable[..., bool]'),
    ],
)
def test_a_hint_is_written_as_code(hint: object, text: str) -> None:
    assert TypeNames().text(hint) == text


class User(pydantic.BaseModel):
    name: str = pydantic.Field(validation_alias='user_name')
    count: int = pydantic.Field(serialization_alias='N', ge=1, le=9, default=1)
    secret: str = pydantic.Field(exclude=True, default='')

    @pydantic.computed_field
    @property
    def loud(self) -> str:
        """In capitals."""
        return self.name.upper()


class Team(pydantic.BaseModel):
    users: list[User]


@dataclass
class Square:
    side: int
    area: int = field(init=False, default=0)


async def test_a_type_with_other_keys_in_results_is_shown_twice() -> None:
    @tool
    def same(team: Team) -> Team:
        return team

    assert (
        same.stub
        == """\
class User(TypedDict):
    user_name: str
    count: int  # >= 1, <= 9; default 1
    secret: str  # default ''

class Team(TypedDict):
    users: list[User]

class User2(TypedDict):
    name: str
    N: int  # >= 1, <= 9; default 1
    loud: str  # In capitals.

class Team2(TypedDict):
    users: list[User2]

def same(team: Team) -> Team2:
    ..."""
    )
    assert await same.invoke(({'users': [{'user_name': 'a'}]},)) == {'users': [{'name': 'a', 'N': 1, 'loud': 'A'}]}


def test_a_field_that_is_no_argument_is_shown_in_results_only() -> None:
    @tool
    def take(square: Square) -> None: ...

    @tool
    def give() -> Square:
        return Square(1)

    assert take.stub.startswith('class Square(TypedDict):\n    side: int\n\n')
    assert give.stub.startswith('class Square(TypedDict):\n    side: int\n    area: int\n\n')


def test_what_a_value_must_fulfil_is_said() -> None:
    @dataclass
    class Order:
        count: Annotated[int, 'pieces', pydantic.Field(gt=0)] = 1

    @tool
    def buy(
        order: Order,
        code: Annotated[str, pydantic.Field(description='of the shop', min_length=2, max_length=4, pattern='^[a-z]+$')],
        rates: list[Annotated[float, pydantic.Field(ge=0, lt=1)]],
        limit: pydantic.PositiveInt | None = None,
    ) -> None:
        """Buy."""

    assert '    count: int  # pieces; > 0; default 1\n' in buy.stub
    assert buy.stub.endswith('''"""Buy.

    code: of the shop; length >= 2, length <= 4, matches ^[a-z]+$
    rates: each >= 0, each < 1
    limit: > 0
    """''')


def test_two_types_of_one_name_get_two() -> None:
    def make() -> type:
        @dataclass
        class Hit:
            other: int

        return Hit

    names = TypeNames()
    assert [names.text(Hit), names.text(make()), names.text(Hit)] == ['Hit', 'Hit2', 'Hit']
    assert 'class Hit2(TypedDict):\n    other: int' in names.stubs()


def test_keys_that_are_no_names_are_shown_too() -> None:
    odd = TypedDict('odd', {'class': int, 'x': str})
    names = TypeNames()
    names.text(odd)
    assert names.stubs() == ["odd = TypedDict('odd', {'class': int, 'x': str})"]


def test_a_tool_that_hides_its_errors_says_that_it_may_return_none() -> None:
    @tool(on_error='none')
    def f() -> int:
        return 1

    @tool(on_error='none')
    def g() -> int | None:
        return 1

    assert (f.signature, g.signature) == ('() -> int | None', '() -> int | None')


def test_a_default_that_cannot_be_written_is_left_out() -> None:
    @tool
    def f(x: object = object(), color: Color = Color.BLUE) -> None: ...

    assert f.signature == "(x: object = ..., color: Color = 'blue') -> None"


@given(st.text())
def test_any_text_can_be_a_docstring(text: str) -> None:
    source = f'def f():\n    {docstring(text)}\n'
    assert ast.parse(source).body


@given(samples())
def test_the_stub_of_any_signature_is_python(sample: Sample) -> None:
    stub = tool(sample.function).stub
    [parsed] = ast.parse(stub).body
    assert isinstance(parsed, ast.FunctionDef)
    original = ast.parse(sample.source).body[0]
    assert isinstance(original, ast.FunctionDef)
    assert ast.dump(parsed.args) == ast.dump(original.args)
