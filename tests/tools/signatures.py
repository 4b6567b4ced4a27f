"""Functions with random signatures, and calls that fit them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from hypothesis import strategies as st

NAMES = ('a', 'b', 'c', 'd', 'e', 'f', 'g')
VALUES: st.SearchStrategy[object] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.just(0.0),
    st.text(max_size=2),
    st.lists(st.integers(0, 1), max_size=2),
    st.dictionaries(st.text(max_size=1), st.booleans(), max_size=1),
)


@dataclass(frozen=True)
class Sample:
    """A function that returns all it got, and a call of it."""

    source: str
    function: Callable[..., object]
    args: tuple[object, ...]
    kwargs: dict[str, object]


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """A random signature (without hints, so that any value fits) and arguments that it takes."""
    names: list[str] = list(NAMES[: draw(st.integers(0, 6))])
    kinds = sorted(draw(st.sampled_from(['only', 'any', 'named'])) for _ in names)
    kinds.sort(key=['only', 'any', 'named'].index)
    defaults = _defaults(draw, kinds)
    takes_more, takes_named = draw(st.booleans()), draw(st.booleans())
    source = _source(names, kinds, defaults, takes_more, takes_named)
    made: dict[str, object] = {}
    exec(source, made)
    args, kwargs = _call(draw, names, kinds, defaults)
    if takes_more and len(args) == sum(kind != 'named' for kind in kinds):
        args += draw(st.lists(VALUES, max_size=2))
    if takes_named:
        kwargs |= draw(st.dictionaries(st.sampled_from(['x', 'y', 'self', 'name']), VALUES, max_size=2))
    return Sample(source, cast('Callable[..., Any]', made['sample']), tuple(args), kwargs)


def _defaults(draw: st.DrawFn, kinds: list[str]) -> list[bool]:
    """Among those by position, one with a default has only such after it."""
    positional = sum(kind != 'named' for kind in kinds)
    first = draw(st.integers(0, positional))
    return [index >= first if kind != 'named' else draw(st.booleans()) for index, kind in enumerate(kinds)]


def _source(names: list[str], kinds: list[str], defaults: list[bool], more: bool, named: bool) -> str:
    parts: list[str] = []
    for index, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        if kind == 'named' and not more and (index == 0 or kinds[index - 1] != 'named'):
            parts.append('*')
        if kind == 'named' and more and (index == 0 or kinds[index - 1] != 'named'):
            parts.append('*more')
        parts.append(name + ("='default'" if defaults[index] else ''))
        if kind == 'only' and (index + 1 == len(kinds) or kinds[index + 1] != 'only'):
            parts.append('/')
    if more and '*more' not in parts:
        parts.append('*more')
    if named:
        parts.append('**named')
    got = [*names, *(['more'] if more else []), *(['named'] if named else [])]
    return f'def sample({", ".join(parts)}):\n    return [{", ".join(got)}]\n'


def _call(
    draw: st.DrawFn, names: list[str], kinds: list[str], defaults: list[bool]
) -> tuple[list[object], dict[str, object]]:
    args: list[object] = []
    kwargs: dict[str, object] = {}
    by_position = True
    for name, kind, optional in zip(names, kinds, defaults, strict=True):
        if optional and draw(st.booleans()):
            by_position = False
        elif kind != 'named' and by_position and (kind == 'only' or draw(st.booleans())):
            args.append(draw(VALUES))
        elif kind != 'only':
            by_position = False
            kwargs[name] = draw(VALUES)
    return args, kwargs
