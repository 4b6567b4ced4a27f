"""What must survive a snapshot: a cell, then what another one in the restored sandbox says, and should say."""

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class Survivor:
    name: str
    made: str
    check: str
    value: object


def survivors() -> list[Survivor]:
    found: list[Survivor] = []
    for case in CASES.split('\n# ')[1:]:
        name, _, rest = case.partition('\n')
        made, _, rest = rest.partition('\n>>> ')
        check, _, value = rest.partition('\n')
        found.append(Survivor(name, made, check, ast.literal_eval(value.strip())))
    return found


CASES = '''
# closures that count
def outer():
    n = 0
    def inner():
        nonlocal n
        n += 1
        return n
    def peek(): return n
    return inner, peek
count, peek = outer()
count()
>>> count(), count(), peek()
(2, 3, 3)

# shared references
a = b = [1]
c = {'x': a}
>>> b.append(2), a, c['x'] is b
(None, [1, 2], True)

# dataclasses
from dataclasses import dataclass, field, replace
@dataclass(frozen=True, slots=True)
class P:
    x: int
    tags: list[str] = field(default_factory=list)
p = P(1)
>>> p == P(1), replace(p, x=2).x, P.__annotations__['x'].__name__
(True, 2, 'int')

# enums
import enum
class C(enum.Enum):
    RED = 1
    BLUE = 2
class F(enum.Flag):
    A = 1
    B = 2
c = C.RED
>>> c is C.RED, C(2).name, (F.A | F.B).value
(True, 'BLUE', 3)

# classes with slots
class S:
    __slots__ = ('x', 'y')
s = S()
s.x = 1
>>> s.x, hasattr(s, 'y')
(1, False)

# inheritance and super
class A:
    def f(self): return 'A'
    @classmethod
    def make(cls): return cls()
    @staticmethod
    def s(): return 's'
    @property
    def p(self): return self.f() + '!'
class B(A):
    def f(self): return super().f() + 'B'
b = B.make()
>>> b.f(), b.p, B.s(), isinstance(b, A), B.__mro__[1] is A, type(b) is B
('AB', 'AB!', 's', True, True, True)

# abstract and generic classes
import abc
from typing import Generic, TypeVar
T = TypeVar('T')
class G(abc.ABC, Generic[T]):
    @abc.abstractmethod
    def f(self): ...
class H(G[int]):
    def f(self): return 1
>>> H().f(), H.__orig_bases__[0].__args__[0].__name__, list(G.__abstractmethods__)
(1, 'int', ['f'])

# metaclasses
class M(type):
    def __call__(cls, *args): return super().__call__(*args)
class A(metaclass=M):
    def __init_subclass__(cls, **settings): cls.settings = settings
class B(A, z=1): pass
b = B()
>>> type(type(b)) is M, B.settings
(True, {'z': 1})

# lambdas
k = 3
fs = [lambda x, i=i: x * i + k for i in range(3)]
>>> [f(2) for f in fs]
[3, 5, 7]

# modules
import math as m, os.path, json
from collections import Counter
>>> m.sqrt(4), os.path.join('a', 'b'), json.dumps(Counter('aa'))
(2.0, 'a/b', '{"a": 2}')

# modules made by hand
import types
m = types.ModuleType('made')
m.x = 1
>>> m.x, m.__name__
(1, 'made')

# aliases of tools
say = greet
tools = {'g': greet}
>>> say('you'), tools['g'] is greet
('hello you', True)

# what every sandbox has
import sys, __main__ as me
out = sys.stdout
show = display
say = print
many = len
>>> show == display, out is sys.stdout, say is print, many('ab'), me.many is many
(True, True, True, 2, True)

# recursive structures
a = []
a.append(a)
d = {'a': a}
d['d'] = d
>>> a[0] is a, d['d']['d']['a'] is a
(True, True)

# objects that know each other
class N: pass
a, b = N(), N()
a.other, b.other = b, a
parents = {a: b}
>>> a.other.other is a, parents[a] is b
(True, True)

# bound methods
class A:
    n = 1
    def f(self): return self.n
a = A()
f = a.f
a.n = 2
>>> f(), f.__self__ is a
(2, True)

# partials and caches
import functools
add = functools.partial(lambda a, b: a + b, 1)
@functools.cache
def f(n): return n * 2
class A:
    @functools.lru_cache(maxsize=2)
    def m(self, x): return x
>>> add(2), f(4), A().m(5), f.cache_info().misses
(3, 8, 5, 1)

# decorators
import functools
def twice(g):
    @functools.wraps(g)
    def w(*args): return g(*args) * 2
    return w
@twice
def h(x):
    "doc"
    return x
>>> h(2), h.__name__, h.__doc__, h.__wrapped__(2)
(4, 'h', 'doc', 2)

# functions with everything
import inspect
def f(a: int, b=[1], *c, d: 'str' = 'x', **e) -> list[int]:
    """Doc."""
    return b
f.extra = 5
>>> f(1), f.extra, f.__doc__, str(inspect.signature(f)), f.__module__
([1], 5, 'Doc.', "(a: int, b=[1], *c, d: 'str' = 'x', **e) -> list[int]", '__main__')

# generic functions
def f[T](x: T) -> list[T]: return [x]
>>> f(1), f.__type_params__[0].__name__
([1], 'T')

# recursion
def fac(n): return n * fac(n - 1) if n else 1
>>> fac(10)
3628800

# coroutine and generator functions
async def a(x): return x
def g():
    yield 1
    yield 2
>>> await a(list(g()))
[1, 2]

# functions see later changes of globals
k = 1
def f(): return k
>>> f(), globals().update(k=5), f()
(1, None, 5)

# exceptions
class E(Exception):
    def __init__(self, a, b):
        super().__init__('shown')
        self.a = a
try:
    raise E(1, 2)
except E as e:
    kept = e
try:
    open('missing')
except OSError as e:
    other = e
>>> isinstance(kept, E), str(kept), kept.a, type(other).__name__
(True, 'shown', 1, 'FileNotFoundError')

# named tuples and other small types
from collections import namedtuple
from typing import NamedTuple, NewType, TypedDict
P = namedtuple('P', 'x y')
class Q(NamedTuple):
    a: int
    b: str = 'b'
class D(TypedDict):
    k: int
U = NewType('U', int)
p = P(1, 2)
>>> p._asdict(), P(3, 4).y, Q(1), D(k=1), U(5)
({'x': 1, 'y': 2}, 4, (1, 'b'), {'k': 1}, 5)

# standard objects
import collections, pathlib, random, re
pattern = re.compile('a+')
queue = collections.deque([1], 3)
path = pathlib.Path('a') / 'b'
chance = random.Random(1)
first = random.Random(1).random()
span = range(3)
>>> pattern.match('aa').end(), queue.maxlen, str(path), chance.random() == first, list(span)
(2, 3, 'a/b', True, [0, 1, 2])

# names of builtins
list = [1]
print = 3
>>> list, print
([1], 3)
'''
