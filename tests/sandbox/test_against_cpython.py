"""Random programs give the same value and the same output inside as in the Python that runs this test."""

import ast
import contextlib
import io
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from habilis.core.limits import Limits
from habilis.sandbox.session import Sandbox, SyncSandbox

Source = st.SearchStrategy[str]

# A small grammar. Each expression has a type, so that most programs say something before they fail. What differs among
# versions of Python is left out (the sum of floats, what of Unicode can be printed), and nothing grows without bound.

words: Source = st.text('ab Z9_-%{}\'"\n\\é😀', max_size=6).map(repr)
numbers: Source = st.one_of(
    st.integers(-100, 100).map('({})'.format),
    st.integers(-(2**70), 2**70).map('({})'.format),
    st.floats(-1e6, 1e6, allow_nan=False).map('({!r})'.format),
    st.sampled_from(['a', 'b', 'len(s)', 'len(xs)', 'max(xs)', 'd["k"]', 'f(a)', 'True', '0.1', '10 ** 20']),
)
texts: Source = words | st.sampled_from(
    ['s', '(s * 3)', 's.upper()', 's[1:]', 's[::-1]', 'str(a)', 'repr(xs)', '"{}-{:>5}".format(a, s)', 's.title()']
)
lists: Source = st.sampled_from(
    ['xs', 'xs[1:]', 'xs[::-2]', 'sorted(xs)', 'list(range(5))', 'list(s)', 'sorted(set(xs))', 'list(enumerate(xs, 1))']
)


def fill(template: str, *parts: Source) -> Source:
    """The template with each `@` replaced by what one of the strategies gives."""
    first, *others = template.split('@')
    return st.tuples(*parts).map(
        lambda given: first + ''.join(f'{part}{text}' for part, text in zip(given, others, strict=True))
    )


def _number(inner: Source) -> Source:
    return st.one_of(
        fill('(@ @ @)', inner, st.sampled_from(['+', '-', '*', '//', '%', '/', '&', '|', '^']), inner),
        fill('(-@)', inner),
        fill('abs(@)', inner),
        fill('round(@, 2)', inner),
        fill('divmod(@, @)[0]', inner, inner),
        fill('(@ if @ < @ else a)', inner, inner, inner),
        fill('min(@, @)', inner, inner),
    )


number = st.recursive(numbers, _number, max_leaves=5)
text: Source = st.one_of(
    texts,
    fill('(@ + @)', texts, texts),
    fill('@.join([@, s, s])', texts, texts),
    fill('@.replace(@, @)', texts, texts, texts),
    fill("f'<{(@)@}>'", number, st.sampled_from(['', '!r', ':>8', ':.3f', ':e', ':,', ':x', ':08d', ':+', ':^12'])),
    fill('repr(@.encode())', texts),
    fill('@[@:@]', texts, st.integers(-5, 5).map(str), st.integers(-5, 5).map(str)),
    fill('(@ % @)', texts, number),
)
collection: Source = st.one_of(
    lists,
    st.lists(number, max_size=4).map(lambda items: f'[{", ".join(items)}]'),
    fill('[x * 2 for x in xs if x > @]', number),
    fill('[(x, y) for x in xs for y in (1, @)]', number),
    fill('{@: @, "k": 1}', text, number),
    fill('sorted({x % 3 for x in xs} | {@})', number),
    fill('{x: x + @ for x in xs}', number),
    fill('tuple(map(lambda x: x - @, xs))', number),
    fill('list(zip(xs, @))', text),
    fill('sorted(@, key=ord, reverse=True)', text),
    fill('@.split("a")', text),
)
expression: Source = st.one_of(number, text, collection)
truth: Source = st.one_of(
    fill('@ @ @', number, st.sampled_from(['<', '==', '!=', '>=']), number),
    fill('"a" in @', text),
    fill('not @', collection),
    fill('@ in @', number, collection),
)
simple: Source = st.one_of(
    fill('print(@)', expression),
    fill('print(@, @, sep="|", end="\\n\\n")', text, expression),
    fill('a = clip(@)', number),
    fill('b = clip(@)', number),
    fill('a += clip(@)', number),
    fill('s = @[:20]', text),
    fill('xs.append(clip(@))', number),
    fill('d[@] = clip(@)', text, number),
    st.sampled_from(['xs.pop()', 'xs.sort()', 'a, b = b, a', 'del xs[0]', 'd.pop("k", None)', 'xs[1:2] = [7, 8]']),
)


def _indented(lines: list[str]) -> str:
    return '\n'.join(f'    {line}' for statement in lines for line in statement.split('\n'))


def _compound(inner: Source) -> Source:
    block = st.lists(inner, min_size=1, max_size=3).map(_indented)
    error = st.sampled_from(['Exception', '(ValueError, ZeroDivisionError)', 'TypeError', 'LookupError'])
    return st.one_of(
        fill('if @:\n@\nelse:\n@', truth, block, block),
        fill('for i in range(@):\n@\n    if i == 2: break', st.sampled_from('0123'), block),
        fill('for key, item in sorted(d.items()):\n@', block),
        fill('while budget:\n    budget.pop()\n@\nelse: print("spent")', block),
        fill(
            'try:\n@\nexcept @ as error:\n    print(type(error).__name__)\n@\nfinally: print("end")',
            block,
            error,
            block,
        ),
        fill('def f(x, y=@, *z, **w):\n    return clip(x) + y - @\nprint(f(1))', number, number),
        fill('def g():\n    global a, b, s\n    a = @\n@\n    return s\nprint(g())', number, block),
        fill('class C:\n    x = @\n    def __repr__(self): return f"C({self.x})"\nprint([C(), C()])', number),
        fill('def gen():\n    yield @\n    yield from xs\nprint(list(gen()))', number),
        fill('match @:\n    case "": print(0)\n    case str(m) if len(m) > 3: print(m)\n    case _: print(1)', text),
        fill('with contextlib.suppress(Exception):\n@', block),
    )


PRELUDE = """\
import contextlib
a, b, s, xs, d, budget = 7, -3, 'hello', [3, 1, 2], {'k': 5}, [0] * 9
def clip(n): return n if -1e30 < n < 1e30 else 1
def f(x): return x + 1
def g(): return 0
"""
statements = st.lists(st.recursive(simple, _compound, max_leaves=6), min_size=1, max_size=6).map('\n'.join)
programs: Source = fill(PRELUDE + '@\n@', statements, expression)


def run_here(code: str) -> tuple[str | None, str, str | None]:
    """What this Python makes of a program: the value's repr, the output, the name of the error."""
    tree = ast.parse(code)
    last = tree.body.pop()
    assert isinstance(last, ast.Expr)
    names: dict[str, object] = {'__name__': '__main__'}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec(compile(tree, '<program>', 'exec'), names)
            value: object = eval(compile(ast.Expression(last.value), '<program>', 'eval'), names)
        except Exception as error:
            return None, printed.getvalue(), type(error).__name__
    return repr(value), printed.getvalue(), None


@pytest.fixture(scope='module')
def inside() -> Iterator[SyncSandbox]:
    with Sandbox.create_sync(limits=Limits(seconds=20), checkpoints=False) as made:
        yield made


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(code=programs)
@example(code=PRELUDE + '1 / 0')
@example(code=PRELUDE + 'print(s)\nxs')
@example(code=PRELUDE + 'f"{a!r:>5}{0.1 + 0.2}{1e22}{-0.0}{10 ** 30}"')
@example(code=PRELUDE + 'print(*sorted({str(x): x for x in range(20)}.items()))\n[0.1 * 3, 5 // -2, 5 % -2]')
def test_a_program_gives_the_same_value_and_output_inside(inside: SyncSandbox, code: str) -> None:
    text, stdout, error = run_here(code)
    cell = inside.run(code)
    assert (cell.text, cell.stdout, cell.error and cell.error.type) == (text, stdout, error)
