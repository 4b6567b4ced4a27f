"""The list of imports of code rules: attacks on it in a real sandbox."""

from collections.abc import AsyncIterator

import pytest

from habilis.core.limits import Limits
from habilis.sandbox.code_rules import CodeRules
from habilis.sandbox.session import Sandbox

LISTED = ('math', 'json', 'datetime', 'random', 'collections', 'dataclasses', 'functools', 're', 'statistics')


@pytest.fixture
async def listed() -> AsyncIterator[Sandbox]:
    """A sandbox with a list of imports."""
    async with await Sandbox.create(limits=Limits(seconds=10), code_rules=CodeRules(imports=LISTED)) as made:
        yield made


@pytest.mark.parametrize(
    'code',
    [
        'import os',
        'exec("import os")',
        'exec("import os", {})',
        'exec("import os", {"__name__": "json"})',
        'exec("import os", vars(__import__("json")))',
        'eval("__import__(\'os\')")',
        'eval("__import__(\'os\')", {})',
        'exec(compile("import os", "x.py", "exec"))',
        'exec(compile("import os", "/python/json/__init__.py", "exec"))',
        'exec(compile("import os", b"/python/json/__init__.py", "exec"))',
        'exec(compile("import os", "<frozen os>", "exec"))',
        'exec(compile("import os", "x", "exec").replace(co_filename="/python/json/__init__.py"))',
        'def f():\n    import os\nf.__code__ = f.__code__.replace(co_filename="/packages/x.py")\nf()',
        '__import__("os")',
        'g = globals()["__builtins__"].__import__\ng("os")',
        'vars(__builtins__)["__import__"]("os")',
        'getattr(__builtins__, "__im" + "port__")("os")',
        'list(map(__import__, ["os"]))',
        'type("T", (), {"f": __import__}).f("os")',
        'import functools\nfunctools.partial(__import__, "os")()',
        'import functools\nfunctools.reduce(lambda a, b: __import__(b), ["", "os"])',
        'import collections\ncollections.defaultdict(lambda: __import__("os"))[1]',
        'class A:\n    def __getattr__(self, name):\n        import os\n        return os\nA().x',
        'import math\nmath.__spec__.loader.load_module("posix")',
        'import math\ngetattr(math, "__sp" + "ec__".lower()).loader.load_module("posix")',
        'import math\nname = "__loader__"\ngetattr(math, name).load_module("posix")',
        'import json\njson.codecs',
        'import json\njson.codecs.sys.modules["os"]',
        'import json\nname = "codecs"\ngetattr(json, name)',
        'import json\nvars(json)["codecs"]',
        'import json\njson.__dict__["codecs"]',
        'import json\nname = "codecs"\njson.__dict__.get(name).sys',
        'import json\n[v for v in vars(json).values() if type(v) is type(json)][0].sys',
        'from json import codecs',
        'import json\njson.decoder.scanner.sys',
        'import random\nrandom._os.listdir("/")',
        'import statistics\nstatistics.sys',
        'import dataclasses\ndataclasses.sys.modules["os"]',
        'import dataclasses\ndataclasses.inspect.os',
        'import re\nre.copyreg',
        'import json\njson.dumps.__globals__["codecs"]',
        'import collections\ncollections._sys.modules["os"]',
        'import datetime\ndatetime.sys',
        '().__class__.__base__.__subclasses__()',
        'try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    error.__traceback__.tb_frame.f_back.f_globals["os"]',
        '(x for x in ()).gi_frame.f_back',
        'from math import *\n__loader__.load_module("posix")',
        'import _strptime\n_strptime.os',
        '__import__("warnings").sys.modules["os"]',
    ],
)
async def test_a_module_outside_the_list_is_not_reached(listed: Sandbox, code: str) -> None:
    cell = await listed.run(code)
    assert cell.error is not None, cell
    assert cell.error.kind == 'code_rules' or cell.error.type in {
        'KeyError',
        'IndexError',
        'AttributeError',
        'NameError',
    }


@pytest.mark.parametrize(
    ('imports', 'code'),
    [
        (('pickle',), 'import pickle\npickle.loads(b"cos\\nlistdir\\n.")'),
        (('pickle',), 'import pickle\npickle._loads(b"cos\\nlistdir\\n.")'),
        (('pickle', 'io'), 'import pickle, io\npickle._Unpickler(io.BytesIO(b"cos\\nlistdir\\n.")).load()'),
        (('cloudpickle',), 'import cloudpickle\ncloudpickle.loads(b"cos\\nlistdir\\n.")'),
        (('importlib',), 'import importlib\nimportlib.import_module("os")'),
        (('importlib',), 'import importlib\nimportlib.__import__("os")'),
        (('importlib',), 'import importlib\nimportlib.sys.modules["os"]'),
        (('builtins',), 'import builtins\nbuiltins.__import__("os")'),
        (('json.*',), 'import json\njson.codecs'),
        (('json.*',), 'from json import codecs'),
        (('json.*',), 'import json.decoder\njson.decoder.scanner.re'),
        (('sys',), 'import sys\nsys.modules["os"]'),
        (('sys',), 'import sys\nsys.modules.get("os")'),
        (('sys',), 'import sys\nname = "os"\nsys.modules[name]'),
        (('runpy',), 'import runpy\nrunpy.os'),
        (('pkgutil',), 'import pkgutil\npkgutil.resolve_name("os:listdir")'),
        (('marshal',), 'import marshal\nexec(marshal.loads(marshal.dumps(compile("import os", "x", "exec"))))'),
        (('types',), 'import types\ntypes.FunctionType(compile("import os", "x", "exec"), {})()'),
        (('timeit',), 'import timeit\ntimeit.timeit("import os", number=1)'),
    ],
)
async def test_a_listed_module_does_not_import_by_name_for_a_cell(imports: tuple[str, ...], code: str) -> None:
    async with await Sandbox.create(code_rules=CodeRules(imports=imports)) as sandbox:
        cell = await sandbox.run(code)
    assert cell.error is not None, cell
    assert cell.error.kind == 'code_rules', cell.error


@pytest.mark.parametrize(
    ('code', 'value'),
    [
        ('import datetime\ndatetime.datetime.strptime("2024", "%Y").year', 2024),
        ('from math import *\nfloor(2.5)', 2),
        ('from json import *\ndumps([1])', '[1]'),
        ('import json\njson.loads(json.dumps({"a": [1]}))', {'a': [1]}),
        ('import json\njson.decoder.JSONDecoder().decode("1")', 1),
        ('import random\nrandom.seed(1)\nlen([random.random() for _ in range(5)])', 5),
        ('import statistics\nstatistics.mean([1, 2, 3])', 2),
        ('import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int = 1\nP().x', 1),
        ('import collections\ncollections.namedtuple("P", "x")(3).x', 3),
        ('import re\nre.sub("a", "b", "aa")', 'bb'),
        ('exec("import math\\ny = math.floor(3.5)")\ny', 3),
        ('eval("1 + 1")', 2),
        ('exec(compile("z = 5", "mine.py", "exec"))\nz', 5),
        ('len(str(10**50_000))', 50_001),
        ('import json\nhasattr(json, "dumps"), "dumps" in vars(json)', (True, True)),
        ('class A:\n    def __init__(self): self.x = 1\nA().__dict__', {'x': 1}),
    ],
)
async def test_what_is_listed_works(listed: Sandbox, code: str, value: object) -> None:
    cell = await listed.run(code)
    assert (cell.error, cell.value) == (None, value)


async def test_modules_are_whole_again_when_the_rules_are_removed() -> None:
    async with await Sandbox.create(code_rules=CodeRules(imports=('json', 'math'))) as sandbox:
        assert (await sandbox.run('import json, math')).ok
        sandbox.code_rules = None
        cell = await sandbox.run('import os\njson.codecs.sys.modules["os"] is os, json.__spec__.name')
        assert cell.value == (True, 'json')
        assert (await sandbox.run('import importlib\nimportlib.reload(json).dumps(math.floor(1.5))')).value == '1'
        twin = await sandbox.fork()
        assert (await twin.run('json.dumps(math.pi > 3)')).value == 'true'
        await twin.close()
