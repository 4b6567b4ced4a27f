"""The end of the traceback of a `KeyError`: which keys there are."""

from typing import Any

import pytest

from habilis.sandbox.guest.missing_keys import existing_keys
from habilis.sandbox.guest.tracebacks import remember_source
from tests.cases import each_case

FRAME = """
class DataFrame:
    columns = ['year', 'région\\n']
    def __getitem__(self, key): raise KeyError(key)
    def group(self, name): return self
DataFrame.__module__ = 'pandas.core.frame'
"""


def hint(code: str) -> str:
    remember_source('<cell 1>', code)
    names: dict[str, Any] = {'__name__': '__main__'}
    exec(compile(FRAME, '/packages/pandas/core/frame.py', 'exec'), names)
    with pytest.raises(KeyError) as caught:
        exec(compile(code, '<cell 1>', 'exec'), names)
    return existing_keys(caught.value)


@each_case(
    ('code', 'said'),
    [
        ("d = {'a': 1, 2: 3}\nd['b']", "(d has the keys 'a', 2)"),
        ("d = {'a': [{'b': 1}]}\nd['a'][0]['c']", "(d['a'][0] has the keys 'b')"),
        ("def f(d):\n    é = 1; return (d\n      ['x'])\nf({})", '(d has no keys)'),
        ("d = {'a': 1}\nd.pop('b')", "(d has the keys 'a')"),
        ('d = dict.fromkeys(range(30))\nd[99]', f'(d has the keys {", ".join(map(str, range(20)))} and 10 more)'),
        ("d = {'k' * 100: 1}\nd['a']", f"(d has the keys '{'k' * 58}…)"),
        ("table = DataFrame()\ntable['sales']", "(table has the columns 'year', 'région\\n')"),
        ("table = DataFrame()\ntable.group('year')['sales']", "(table has the columns 'year', 'région\\n')"),
        ("raise KeyError('own')", ''),
        ("class D(dict):\n    def keys(self): 1 / 0\nD()['a']", ''),
        ("{'a': 1}['b']", ''),
        ('{1}.remove(2)', ''),
    ],
)
def test_the_keys_that_there_are_end_the_traceback(code: str, said: str) -> None:
    assert hint(code) == said
