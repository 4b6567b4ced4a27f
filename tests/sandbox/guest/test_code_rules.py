"""What the guest's policies refuse and what they leave alone."""

import ast
import builtins
import importlib
import json
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType, ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.sandbox.guest.code_rules import CodeRules, CodeRulesError, RefusedImport, check
from habilis.sandbox.guest.import_gate import ImportGate
from tests.cases import each_case

CALLS = CodeRules(calls=True)
STRINGS = CodeRules(strings=True)
EVERYTHING = CodeRules(imports=(), calls=True, strings=True)


def refusal(code: str, rules: CodeRules) -> CodeRulesError | None:
    try:
        check(ast.parse(code), rules)
    except CodeRulesError as error:
        return error
    return None


def refused_name(code: str, rules: CodeRules) -> str | None:
    """The name a refusal begins with, which is what `allow` or `imports` would have to list."""
    error = refusal(code, rules)
    return None if error is None else str(error).removeprefix('import of ').partition(' is refused: ')[0]


# The import list


@each_case(
    ('imports', 'module', 'allowed'),
    [
        (('numpy',), 'numpy', True),
        (('numpy',), 'numpy.linalg', False),
        (('numpy',), 'numpy_financial', False),
        (('numpy.*',), 'numpy', True),
        (('numpy.*',), 'numpy.linalg', True),
        (('numpy.*',), 'numpy.linalg.lapack', True),
        (('numpy.*',), 'numpy_financial', False),
        (('numpy.linalg.*',), 'numpy', False),
        (('numpy.linalg.*',), 'numpy.linalg', True),
        (('numpy.linalg.*',), 'numpy.random', False),
        (('os.path',), 'os', False),
        (('os.path',), 'os.path', True),
        (('math', 'json'), 'json', True),
        (('math', 'json'), 'subprocess', False),
        (('*',), 'subprocess', True),
        (('*',), 'os.path', True),
        ((), 'math', False),
        (None, 'subprocess', True),
    ],
)
def test_the_list_permits_exact_names_and_wildcards(
    imports: tuple[str, ...] | None, module: str, allowed: bool
) -> None:
    rules = CodeRules(imports=imports)
    assert rules.permits(module) is allowed
    assert (refusal(f'import {module}', rules) is None) is allowed
    assert (refusal(f'import {module} as m', rules) is None) is allowed
    assert (refusal(f'importlib.import_module({module!r})', rules) is None) is allowed


@each_case(
    ('code', 'module'),
    [
        ('import subprocess', 'subprocess'),
        ('import math, subprocess', 'subprocess'),
        ('import math as m, subprocess as s', 'subprocess'),
        ('import os.path', 'os.path'),
        ('from subprocess import run', 'subprocess'),
        ('from subprocess import *', 'subprocess'),
        ('from os.path import join', 'os.path'),
        ('def f():\n    import subprocess', 'subprocess'),
        ('class A:\n    import subprocess', 'subprocess'),
        ('try:\n    import subprocess\nexcept ImportError:\n    pass', 'subprocess'),
        ("__import__('subprocess')", 'subprocess'),
        ("__import__('sub' + 'process')", 'subprocess'),
        ("importlib.import_module('subprocess')", 'subprocess'),
        ("import importlib as il\nil.import_module('subprocess')", 'subprocess'),
        ("from importlib import import_module\nimport_module('subprocess')", 'subprocess'),
        ("from importlib import import_module as load\nload('subprocess')", 'subprocess'),
        ("importlib.__import__('subprocess')", 'subprocess'),
        ("__builtins__['__import__']('subprocess')", 'subprocess'),
        ("load = __import__\nload('subprocess')", 'subprocess'),
    ],
)
def test_an_import_outside_the_list_is_refused(code: str, module: str) -> None:
    assert refused_name(code, CodeRules(imports=('math', 'importlib', 'numpy.*'))) == module


@each_case(
    'code',
    [
        'import math',
        'from math import sqrt, pi',
        'from math import *',
        'import numpy as np',
        'import numpy.linalg as la',
        'from numpy import linalg',
        'from numpy.random import default_rng',
        'from os import path',
        'from . import sibling',
        'from .sibling import name',
        'from .. import cousin',
        "__import__('math')",
        "importlib.import_module('numpy.linalg')",
        "importlib.import_module('.sibling', 'package')",
        '__import__(name)',
        'importlib.import_module(name)',
        "def import_module(name): return name\nimport_module('subprocess')",
        "print('import subprocess')",
    ],
)
def test_an_import_on_the_list_or_only_known_at_run_time_passes_the_static_check(code: str) -> None:
    assert refusal(code, CodeRules(imports=('math', 'numpy.*', 'os.path'))) is None


def test_a_star_import_needs_the_module_itself_on_the_list() -> None:
    assert refused_name('from os import *', CodeRules(imports=('os.path',))) == 'os'


def test_the_refusal_of_an_import_says_what_why_and_how_to_allow_it() -> None:
    error = refusal('\n\nimport subprocess', CodeRules(imports=('math', 'numpy.*')))
    assert isinstance(error, RefusedImport)
    assert (error.line, error.name) == (3, 'subprocess')
    assert str(error) == (
        "import of subprocess is refused: it is not on the code rules' list (math, numpy.*). "
        "To allow it, add 'subprocess' to the code rules' `imports`."
    )


# Dangerous calls


@each_case(
    ('code', 'name'),
    [
        # the hostile cases every build must survive
        ("__builtins__['__import__']('subprocess')", 'subprocess'),
        ("getattr(__builtins__,'ex'+'ec')", 'exec'),
        ('().__class__.__base__.__subclasses__()', '__subclasses__'),
        ('from os import system', 'os.system'),
        ("importlib.import_module('os')", 'importlib.import_module'),
        # text as code
        ("eval('1')", 'eval'),
        ("exec('x = 1')", 'exec'),
        ("compile('1', 'f', 'eval')", 'compile'),
        ("e = eval; e('1')", 'eval'),
        ('eval = eval', 'eval'),
        ('eval = [eval][0]', 'eval'),
        ("(lambda run=exec: run('x'))()", 'exec'),
        ('list(map(eval, lines))', 'eval'),
        ('table = {"run": exec}', 'exec'),
        ('@eval\ndef f(): ...', 'eval'),
        ('def f(run: eval): ...', 'eval'),
        ('[eval for eval in [eval]]', 'eval'),
        ('if flag:\n    def eval(x): ...\neval("1")', 'eval'),
        ('def f():\n    def eval(x): ...\neval("1")', 'eval'),
        ('class A:\n    def eval(self): ...\neval("1")', 'eval'),
        ('def f():\n    global eval\n    eval = 1\neval("1")', 'eval'),
        ('f"{eval(x)}"', 'eval'),
        ("import runpy\nrunpy.run_path('x.py')", 'runpy'),
        # other ways to the builtins
        ("__import__('os')", '__import__'),
        ('__import__(name)', '__import__'),
        ('b = __builtins__', '__builtins__'),
        ('__builtins__.eval', 'eval'),
        ("__builtins__['eval']('1')", 'eval'),
        ("__builtins__.__dict__['exec']", 'exec'),
        ("globals()['__builtins__']", '__builtins__'),
        ("globals()['__buil' + 'tins__']", '__builtins__'),
        ("globals().get('__builtins__')", '__builtins__'),
        ("vars()['__builtins__']", '__builtins__'),
        ("locals()['eval']('1')", 'eval'),
        ("builtins.exec('x')", 'exec'),
        ("import builtins as b\nb.exec('x')", 'exec'),
        ("import builtins\nvars(builtins)['exec']('x')", 'exec'),
        ('from builtins import eval as e', 'eval'),
        ('from builtins import *', 'builtins.*'),
        ("sys.modules['builtins'].eval('1')", 'eval'),
        ("print.__self__.eval('1')", '__self__'),
        ("__loader__.load_module('os')", '__loader__'),
        # processes and native code
        ("os.system('ls')", 'os.system'),
        ("import os as o\no.system('ls')", 'os.system'),
        ("o = os\no.system('ls')", 'os.system'),
        ("(o := os).system('ls')", 'os.system'),
        ('run = os.system', 'os.system'),
        ("os.popen('ls').read()", 'os.popen'),
        ("os.execv('/bin/ls', [])", 'os.execv'),
        ("os.spawnl(0, 'ls')", 'os.spawnl'),
        ("os.posix_spawn('ls', [], {})", 'os.posix_spawn'),
        ('os.fork()', 'os.fork'),
        ('os.forkpty()', 'os.forkpty'),
        ('os.kill(1, 9)', 'os.kill'),
        ('os.killpg(1, 9)', 'os.killpg'),
        ('from os import system as f', 'os.system'),
        ('from os import path, popen', 'os.popen'),
        ('from os import *', 'os.*'),
        ("__import__('os').system('ls')", 'os.system'),
        ("vars(os)['system']('ls')", 'os.system'),
        ("os.__dict__['sys' + 'tem']('ls')", 'os.system'),
        ("os.__dict__.get('system')('ls')", 'os.system'),
        ("sys.modules['os'].system('ls')", 'os.system'),
        ("globals()['os'].system('ls')", 'os.system'),
        ("getattr(os, 'system')('ls')", 'os.system'),
        ('def f():\n    import os as o\n    o.system("ls")', 'os.system'),
        ('import subprocess', 'subprocess'),
        ('import subprocess as sp', 'subprocess'),
        ('from subprocess import run', 'subprocess.run'),
        ('from subprocess import *', 'subprocess'),
        ("subprocess.run(['ls'])", 'subprocess.run'),
        ('import pty', 'pty'),
        ('import ctypes', 'ctypes'),
        ('import ctypes.util', 'ctypes.util'),
        ('import posix', 'posix'),
        ("await asyncio.create_subprocess_shell('ls')", 'asyncio.create_subprocess_shell'),
        # from a value into the interpreter
        ('type(x).__bases__', '__bases__'),
        ('type(x).__base__', '__base__'),
        ('type(x).__mro__', '__mro__'),
        ('f.__globals__', '__globals__'),
        ("f.__globals__['os']", '__globals__'),
        ('f.__code__', '__code__'),
        ('f.__code__ = g', '__code__'),
        ('f.__closure__', '__closure__'),
        ('f.__builtins__', '__builtins__'),
        ('frame.f_globals', 'f_globals'),
        ('frame.f_back', 'f_back'),
        ('g.gi_frame', 'gi_frame'),
        ('error.__traceback__.tb_frame', 'tb_frame'),
        ('c.cr_frame', 'cr_frame'),
        ('x.__reduce__()', '__reduce__'),
        ('x.__reduce_ex__(2)', '__reduce_ex__'),
        ("x.__getattribute__('a')", '__getattribute__'),
        ('from os import __builtins__ as b', '__builtins__'),
        ("f.__dict__['__globals__']", '__globals__'),
        ("'{0.__globals__}'.format(f)", '__globals__'),
        ("'{f.__class__.__mro__[1]}'.format_map(d)", '__mro__'),
        ("operator.attrgetter('__class__.__base__')(x)", '__base__'),
        ("from operator import methodcaller\nmethodcaller('__subclasses__')(type)", '__subclasses__'),
        ('match f:\n    case object(__globals__=g):\n        pass', '__globals__'),
        # attributes by name
        ('getattr(x, name)', 'getattr'),
        ('getattr(x, f"_{name}")', 'getattr'),
        ('getattr(*pair)', 'getattr'),
        ('setattr(x, name, 1)', 'setattr'),
        ('delattr(x, name)', 'delattr'),
        ('get = getattr\nget(x, name)', 'getattr'),
        ("getattr(x, 'eval')", 'eval'),
        ("getattr(x, '__subclasses__')", '__subclasses__'),
        ("getattr(x, '__sub' + 'classes__')", '__subclasses__'),
        ("getattr(x, ''.join(['__glo', 'bals__']))", '__globals__'),
        ("getattr(x, '{}{}'.format('__co', 'de__'))", '__code__'),
        ("getattr(x, '%s%s' % ('ev', 'al'))", 'eval'),
        ("getattr(x, 'lave'[::-1])", 'eval'),
        ('getattr(x, f\'{"ev"}al\')', 'eval'),
        ("setattr(f, '__code__', g)", '__code__'),
    ],
)
def test_a_dangerous_call_is_refused(code: str, name: str) -> None:
    assert refused_name(code, CALLS) == name


@each_case(
    'code',
    [
        # must stay allowed in every build
        "import re\nre.compile('a+')",
        'import sys',
        "df.eval('a + b')",
        "'{}'.format(1)",
        "','.join(['a', 'b'])",
        't.join()',
        "ord('a')",
        'import math',
        # look-alikes
        'from re import compile\ncompile("a+")',
        'from re import compile as rx\nrx("a+")',
        "pandas.eval('1')",
        "model.compile(optimizer='adam')",
        'model.eval()',
        "ast.literal_eval('[1]')",
        "connection.execute('select 1')",
        'def compile_report(x): return x\ncompile_report(1)',
        'def system(x): return x\nsystem(1)',
        'def f():\n    def system(x): return x\n    return system(1)',
        "metrics['eval'] = 1",
        "metrics['eval']",
        "metrics.get('exec')",
        'self.os.system()',
        'array.ctypes.data',
        # a name the cell defines is the cell's own
        'def eval(x): return x\neval(1)',
        'class compile: ...\ncompile()',
        'compile = False\nprint(compile)',
        'eval, exec = 1, 2\nprint(eval, exec)',
        'def f(compile=True):\n    return compile',
        'def f():\n    for compile in (1, 2):\n        print(compile)',
        'f = lambda eval: eval + 1',
        '[eval for eval in scores]',
        'os = Machine()\nos.system()',
        'def f(subprocess):\n    return subprocess.run()',
        'def f():\n    try:\n        pass\n    except ValueError as eval:\n        print(eval)',
        'def f(x):\n    match x:\n        case [compile, *eval]:\n            return compile, eval',
        # ordinary code
        'obj.__class__.__name__',
        'obj.__class__',
        'type(x).__name__',
        'x.__dict__',
        "x.__dict__['name']",
        'f.__name__, f.__doc__, f.__module__, f.__annotations__',
        'class A(B):\n    def __init__(self):\n        super().__init__()',
        'class A:\n    def __reduce__(self):\n        return A, ()',
        'from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 0',
        "getattr(obj, 'name', None)",
        "getattr(obj, 'na' + 'me')",
        "setattr(obj, 'name', 1)",
        "hasattr(obj, 'name')",
        "hasattr(obj, '__code__')",
        "operator.attrgetter('name')",
        'sorted(rows, key=operator.attrgetter(column))',
        "open('data.csv').read()",
        "os.remove('data.csv')",
        "os.environ['HOME'], os.path.join('a', 'b'), os.getcwd()",
        "import os, shutil\nshutil.rmtree('build')",
        'from os import path',
        'from os.path import *',
        'from math import *',
        'import importlib.metadata',
        'import builtins\nbuiltins.print(1)',
        'globals()["total"]',
        'vars(args)',
        'import inspect\ninspect.getsource(f)',
        'import asyncio\nasyncio.run(main())',
        'import multiprocessing',
        'os.system = fake',
        "print('eval(1)', '__subclasses__')",
        "'{0.name} {1[key]}'.format(a, b)",
        "'ev' + 'al'",
        "base64.b64decode('aGk=')",
    ],
)
def test_code_that_only_looks_dangerous_is_allowed(code: str) -> None:
    assert refusal(code, CALLS) is None


def test_the_refusal_of_a_call_says_what_why_and_how_to_allow_it() -> None:
    error = refusal("import os\nos.system('ls')", CALLS)
    assert error is not None
    assert error.line == 2
    assert str(error) == (
        'os.system is refused: it starts or ends processes. '
        "To allow it, add 'os.system' to the code rules' `allow`, or set its `calls` to False."
    )


# Hidden strings


@each_case(
    ('code', 'name'),
    [
        ("import base64\nbase64.b64decode('cHJpbnQoMSk=')", 'base64.b64decode'),
        ("import base64 as b\nb.b64decode('cHJpbnQoMSk=')", 'base64.b64decode'),
        ('from base64 import b64decode', 'base64.b64decode'),
        ('decode = base64.b64decode', 'base64.b64decode'),
        ("getattr(base64, 'b64decode')(x)", 'base64.b64decode'),
        ('base64.urlsafe_b64decode(x)', 'base64.urlsafe_b64decode'),
        ('base64.b85decode(x)', 'base64.b85decode'),
        ('base64.decodebytes(x)', 'base64.decodebytes'),
        ('binascii.unhexlify(x)', 'binascii.unhexlify'),
        ('binascii.a2b_base64(x)', 'binascii.a2b_base64'),
        ("codecs.decode(x, 'rot13')", 'codecs.decode'),
        ("bytes.fromhex('6576')", 'bytes.fromhex'),
        ("bytearray.fromhex('6576')", 'bytearray.fromhex'),
        ('zlib.decompress(x)', 'zlib.decompress'),
        ('marshal.loads(x)', 'marshal.loads'),
        ('pickle.loads(x)', 'pickle.loads'),
        ('from pickle import loads', 'pickle.loads'),
        ("''.join(chr(c) for c in codes)", 'chr'),
        ("''.join([chr(c) for c in codes])", 'chr'),
        ("''.join(chr(c) for c in [101, 118, 97, 108])", 'chr'),
        ("''.join(map(chr, codes))", 'chr'),
        ("''.join(map(chr, [101, 118, 97, 108]))", 'chr'),
        ("''.join([chr(1), chr(2), chr(3), chr(4)])", 'chr'),
        ('chr(1) + chr(2) + chr(3) + chr(4)', 'chr'),
        ('chr(a) + chr(b) + "-" + chr(c) + chr(d)', 'chr'),
        ('f"{chr(1)}{chr(2)}{chr(3)}{chr(4)}"', 'chr'),
        ("'{}{}{}{}'.format(chr(1), chr(2), chr(3), chr(4))", 'chr'),
        ("'%s%s%s%s' % (chr(1), chr(2), chr(3), chr(4))", 'chr'),
        ("'ev' + 'al'", 'eval'),
        ("'sub' + 'process'", 'subprocess'),
        ("'__imp' + 'ort__'", '__import__'),
        ("'e' + 'x' + 'e' + 'c'", 'exec'),
        ("('ev' + 'al') + rest", 'eval'),
        ("'os.' + 'system'", 'os.system'),
        ("'__sub' + 'classes__'", '__subclasses__'),
        ("'lave'[::-1]", 'eval'),
        ("'xeval'[1:]", 'eval'),
        ('f\'{"ev"}al\'', 'eval'),
        ('f\'{"ev"!s}{"al"}\'', 'eval'),
        ("'{}{}'.format('ev', 'al')", 'eval'),
        ("'{1}{0}'.format('al', 'ev')", 'eval'),
        ("'%s%s' % ('ev', 'al')", 'eval'),
        ("'ev%s' % 'al'", 'eval'),
        ("''.join(['ev', 'al'])", 'eval'),
        ("''.join(('e', 'v', 'a', 'l'))", 'eval'),
        ("''.join(reversed('lave'))", 'eval'),
        ("''.join(reversed(['al', 'ev']))", 'eval'),
        ("'EVAL'.lower()", 'eval'),
        ("'e-v-a-l'.replace('-', '')", 'eval'),
        ("b'eval'.decode()", 'eval'),
        ("bytes([101, 118, 97, 108]).decode('ascii')", 'eval'),
        ("chr(112) + 't' + 'y'", 'pty'),
        ('__import__(name[::-1])', '__import__'),
        ("eval('1+1'[::-1])", 'eval'),
        ('getattr(x, name[::-1])', 'getattr'),
        ("importlib.import_module('so'[::-1])", 'importlib.import_module'),
    ],
)
def test_a_hidden_string_is_refused(code: str, name: str) -> None:
    assert refused_name(code, STRINGS) == name


@each_case(
    'code',
    [
        "'{}'.format(1)",
        "'{} {}'.format('good', 'day')",
        "'{:>10}'.format(x)",
        "','.join(['a', 'b'])",
        "' '.join(str(n) for n in numbers)",
        "''.join(sorted(word))",
        't.join()',
        "ord('a')",
        'sum(ord(c) for c in text)',
        "'text'.encode()",
        'data.decode()',
        "data.decode('utf-8')",
        "b'plain'.decode()",
        "'text'.encode('utf-8').decode('utf-8')",
        "base64.b64encode(b'data')",
        'import base64',
        'import base64, binascii, codecs, pickle, zlib',
        'binascii.hexlify(x)',
        'bytes.hex(x)',
        'pickle.dumps(x)',
        'zlib.compress(x)',
        'json.loads(x)',
        'chr(65)',
        'chr(65) + chr(66) + chr(67)',
        "''.join(chr(c) for c in (65, 66, 67))",
        '[chr(c) for c in codes]',
        "''.join(map(str, numbers))",
        "chr(ord('a') + shift)",
        'text[::-1]',
        "'level'[::-1]",
        'print(text[::-1])',
        "'eval' 'uate'",
        "'ev' + 'en'",
        "'re' + 'compile'",
        "name = 'eval'",
        "f'eval'",
        "print(f'eval {x}')",
        "'eval'.strip()",
        "path + '/' + name",
        "'%d%%' % 3",
        "'%s of %s' % (a, b)",
        "'a' * 3 + 'b'",
        "eval('1')",
        'import subprocess',
        'x.__subclasses__',
    ],
)
def test_ordinary_string_handling_is_no_false_alarm(code: str) -> None:
    assert refusal(code, STRINGS) is None


# Exceptions, order, switches


@each_case(
    ('allow', 'code'),
    [
        ('eval', "eval('1')"),
        ('eval', "getattr(x, 'eval')"),
        ('eval', "'ev' + 'al'"),
        ('exec', "builtins.exec('x')"),
        ('__import__', "__import__('math')"),
        ('importlib.import_module', "importlib.import_module('os')"),
        ('os.system', "import os\nos.system('ls')"),
        ('os.system', 'from os import system as s'),
        ('os.*', "os.system('ls')\nos.fork()"),
        ('os', "from os import *\nos.popen('ls')"),
        ('subprocess', "import subprocess\nsubprocess.run(['ls'])"),
        ('subprocess.*', "import subprocess\nsubprocess.run(['ls'])"),
        ('subprocess.run', "import subprocess\nsubprocess.run(['ls'])"),
        ('base64.b64decode', 'from base64 import b64decode'),
        ('base64', 'base64.b64decode(x)\nbase64.b85decode(x)'),
        ('chr', "''.join(map(chr, codes))"),
        ('getattr', 'getattr(x, name)'),
        ('__mro__', 'type(x).__mro__'),
        ('*', "eval('1')\nos.system('ls')\nbase64.b64decode(x)"),
    ],
)
def test_an_authorised_name_is_allowed(allow: str, code: str) -> None:
    assert refusal(code, CodeRules(calls=True, strings=True)) is not None
    assert refusal(code, CodeRules(calls=True, strings=True, allow=(allow,))) is None


@each_case(
    ('allow', 'code', 'name'),
    [
        ('eval', "exec('1')", 'exec'),
        ('os.system', "os.popen('ls')", 'os.popen'),
        ('os.sys', "os.system('ls')", 'os.system'),
        ('os.system', 'from os import *', 'os.*'),
        ('subprocess.run', "subprocess.Popen(['ls'])", 'subprocess.Popen'),
        ('base64.b64decode', 'base64.b85decode(x)', 'base64.b85decode'),
    ],
)
def test_an_authorised_name_allows_nothing_beside_it(allow: str, code: str, name: str) -> None:
    assert refused_name(code, CodeRules(calls=True, strings=True, allow=(allow,))) == name


def test_an_authorised_call_is_no_authorised_import() -> None:
    rules = CodeRules(imports=('math',), calls=True, allow=('subprocess',))
    assert isinstance(refusal('import subprocess', rules), RefusedImport)


@each_case(
    ('code', 'line', 'name'),
    [
        ('x = 1\neval(x)\nimport subprocess', 2, 'eval'),
        ('import subprocess\neval(x)', 1, 'subprocess'),
        ('def f():\n    eval(x)\n\n@exec\ndef g(): ...', 2, 'eval'),
        ('@decorate(\n    exec)\ndef g():\n    eval(x)', 2, 'exec'),
        ('f(\n    a,\n    base64.b64decode(b),\n    eval(c),\n)', 3, 'base64.b64decode'),
        ('from os import (\n    path,\n    system,\n)', 3, 'os.system'),
        ('g = eval; h = exec', 1, 'eval'),
    ],
)
def test_the_first_violation_in_line_order_is_reported(code: str, line: int, name: str) -> None:
    rules = CodeRules(calls=True, strings=True)
    error = refusal(code, rules)
    assert error is not None
    assert (error.line, refused_name(code, rules)) == (line, name)


@pytest.mark.parametrize('code', ["eval('1')", "os.system('ls')", 'import subprocess', "'ev' + 'al'"])
def test_rules_that_ask_for_nothing_refuse_nothing(code: str) -> None:
    assert refusal(code, CodeRules()) is None
    assert refusal(code, CodeRules(imports=('*',), allow=('re',))) is None


@each_case(
    'code',
    [
        'x + ' + ' + '.join(["'a'"] * 900),
        ' + '.join(["'a'"] * 900) + ' + x',
        'x' + '.a' * 900,
        'x' + ".get('a')" * 90,
        "''.join(" * 80 + 'x' + ')' * 80,
        '[x for x in ' * 60 + 'y' + ']' * 60,
        'lambda: ' * 80 + 'x',
        "'%999999999s' % 'a'",
        "'{:999999999}'.format('a')",
        "'a' * 10 ** 12 + 'b'",
        "'a'[::0] + 'a'['b':] + 'a'[1.5:] + '{7}'.format('a') + '%s%s' % 'a' + chr(-1) + chr(10 ** 12)",
    ],
)
def test_a_deep_or_costly_expression_is_read_without_harm(code: str) -> None:
    assert refusal(code, CodeRules(calls=True, strings=True)) is None


# Values


def test_the_refused_import_is_a_code_rules_error_and_an_import_error() -> None:
    assert issubclass(RefusedImport, CodeRulesError)
    assert issubclass(RefusedImport, ImportError)


def test_a_code_rules_error_keeps_its_line_when_copied() -> None:
    error = pickle.loads(pickle.dumps(RefusedImport('no', line=3, name='os')))
    assert isinstance(error, RefusedImport)
    assert (str(error), error.line, error.name) == ('no', 3, 'os')


@pytest.mark.parametrize(
    'rules',
    [
        CodeRules(),
        CodeRules(imports=()),
        CodeRules(imports=('numpy.*', 'math'), calls=True),
        CodeRules(strings=True, allow=('eval', 'os.system')),
    ],
)
def test_code_rules_survive_json(rules: CodeRules) -> None:
    assert CodeRules.from_json(json.loads(json.dumps(rules.to_json()))) == rules


def test_a_key_left_out_of_the_json_has_its_default() -> None:
    assert CodeRules.from_json({'calls': True}) == CodeRules(calls=True)


@each_case(
    ('data', 'named'),
    [
        ({'import': ['numpy']}, "'import'"),
        ({'calls': True, 'Strings': True}, "'Strings'"),
        ({3: True}, '3'),
        ({'imports': 'numpy'}, "'imports'"),
        ({'imports': ['numpy', 3]}, "'imports'"),
        ({'imports': {'numpy': True}}, "'imports'"),
        ({'calls': 1}, "'calls'"),
        ({'calls': None}, "'calls'"),
        ({'strings': 'yes'}, "'strings'"),
        ({'allow': None}, "'allow'"),
        ({'allow': 'eval'}, "'allow'"),
        ({'allow': [['eval']]}, "'allow'"),
        (['calls'], 'code rules are a dict'),
        (None, 'code rules are a dict'),
    ],
)
def test_json_with_an_unknown_key_or_a_wrong_type_is_refused_by_name(data: object, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        CodeRules.from_json(data)


@each_case('pattern', ['', 'nump*', '*.linalg', 'numpy.', '.numpy', 'numpy..linalg', 'a b', '**'])
def test_a_pattern_that_could_never_match_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r'imports: .* is not a dotted name'):
        CodeRules(imports=(pattern,))
    with pytest.raises(ValueError, match=r'allow: .* is not a dotted name'):
        CodeRules(allow=(pattern,))


# Random programs

NAMES = st.sampled_from(
    'x eval exec compile os subprocess base64 getattr __import__ __builtins__ importlib chr str bytes vars sys'.split()
)
ATTRIBUTES = st.sampled_from(
    'a system run join format replace decode get lower __class__ __dict__ __globals__ modules import_module'.split()
)
TEXTS = st.sampled_from(['', 'ev', 'al', 'eval', 'os', '.', '{}', '{0}{1}', '%s', '__code__', 'lave', '{', '%', '\xe9'])
CONSTANTS = TEXTS.map(repr) | st.integers(-2, 2**70).map(str) | st.sampled_from(["b'eval'", 'None', '1.5', '...'])


def larger_expressions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def shaped(shape: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.tuples(*parts).map(lambda chosen: shape.format(*chosen))

    return st.one_of(
        shaped('({} + {})', inner, inner),
        shaped('({} % ({},))', inner, inner),
        shaped('({}).{}', inner, ATTRIBUTES),
        shaped('({})[{}]', inner, inner),
        shaped('({})[{}:{}:{}]', inner, inner, inner, inner),
        shaped('({})({}, {})', inner, inner, inner),
        shaped('({}).{}({})', inner, ATTRIBUTES, inner),
        shaped('({})(*{}, k={})', inner, inner, inner),
        shaped('[{}, {}]', inner, inner),
        shaped('[{} for {} in {}]', inner, NAMES, inner),
        shaped('(lambda {}={}: {})', NAMES, inner, inner),
        shaped('({} := {})', NAMES, inner),
    )


EXPRESSIONS = st.recursive(NAMES | CONSTANTS, larger_expressions, max_leaves=12)


@st.composite
def statements(draw: st.DrawFn) -> str:
    name, other, expression = draw(NAMES), draw(NAMES), draw(EXPRESSIONS)
    return draw(
        st.sampled_from(
            [
                expression,
                f'{name} = {expression}',
                f'{name}: {other} = {expression}',
                f'{name}, {other} = {expression}',
                f'import {name}.{other} as {other}',
                f'from {name} import {other}',
                f'from {name} import *',
                f'def {name}({other}={expression}):\n    import {name}\n    return {expression}',
                f'async def {name}(*{other}):\n    await {expression}',
                f'class {name}({other}):\n    {other} = {expression}',
                f'try:\n    {expression}\nexcept {other} as {name}:\n    del {name}',
                f'if {expression}:\n    def {name}(): ...\nelse:\n    global {other}',
                f'match {expression}:\n    case {name}(__code__={other}) | [*_]:\n        pass',
                f'print(f"{{{name}}}{{{other}!r:>{{x}}}}")',
            ]
        )
    )


PROGRAMS = st.lists(statements(), min_size=1, max_size=5).map('\n'.join)


@given(program=PROGRAMS)
def test_a_check_raises_nothing_but_a_code_rules_error(program: str) -> None:
    for rules in (EVERYTHING, CALLS, STRINGS, CodeRules(imports=('os', 'x.*'))):
        error = refusal(program, rules)
        assert error is None or 1 <= (error.line or 0) <= program.count('\n') + 1


@given(program=PROGRAMS)
def test_empty_rules_accept_every_program(program: str) -> None:
    assert refusal(program, CodeRules()) is None


@given(program=PROGRAMS)
def test_adding_the_refused_name_to_the_rules_lifts_that_refusal(program: str) -> None:
    """Doing what the message says is enough: no name is refused twice."""
    rules = CodeRules(calls=True, strings=True)
    seen: set[str] = set()
    while (name := refused_name(program, rules)) is not None:
        assert name not in seen
        seen.add(name)
        rules = CodeRules(calls=True, strings=True, allow=tuple(sorted(seen)))


@given(program=PROGRAMS)
def test_a_check_leaves_the_program_as_it_was(program: str) -> None:
    tree = ast.parse(program)
    before = ast.dump(tree, include_attributes=True)
    with suppress(CodeRulesError):
        check(tree, EVERYTHING)
    assert ast.dump(tree, include_attributes=True) == before


# Imports at run time

CELL = '<cell 1>'


def is_cell(frame: FrameType) -> bool:
    return frame.f_code.co_filename == CELL


class Guest:
    """Runs cells as a kernel would, under the rules of the moment."""

    def __init__(self) -> None:
        self.rules: CodeRules | None = None
        self.gate = ImportGate()

    def run(self, code: str, **names: object) -> dict[str, object]:
        names['__name__'] = '__main__'
        exec(compile(code, CELL, 'exec'), names)
        return names


@pytest.fixture
def guest() -> Iterator[Guest]:
    running = Guest()
    running.gate.install(lambda: running.rules, is_cell)
    yield running
    running.gate.uninstall()


@pytest.mark.parametrize(
    ('code', 'module'),
    [
        ('import subprocess', 'subprocess'),
        ('import os.path', 'os.path'),
        ('from subprocess import run', 'subprocess'),
        ('from subprocess import *', 'subprocess'),
        ("__import__(''.join(['sub', 'process']))", 'subprocess'),
        ("load = __import__\nload('subprocess')", 'subprocess'),
        ("list(map(__import__, ['subprocess']))", 'subprocess'),
        ("import importlib\nname = 'subprocess'\nimportlib.import_module(name)", 'subprocess'),
        ("import importlib\nname = 'subprocess'\nimportlib.__import__(name)", 'subprocess'),
        ('def f():\n    import subprocess\nf()', 'subprocess'),
        ('class A:\n    import subprocess', 'subprocess'),
        ('(lambda: __import__("subprocess"))()', 'subprocess'),
        ('from os import path', 'os.path'),
        ('from os import sys', 'os.sys'),
        ('from xml import dom', 'xml.dom'),
    ],
)
def test_user_code_cannot_import_outside_the_list_at_run_time(guest: Guest, code: str, module: str) -> None:
    guest.rules = CodeRules(imports=('math', 'importlib', 'os', 'xml'))
    with pytest.raises(RefusedImport) as caught:
        guest.run(code)
    assert caught.value.name == module
    assert f"add '{module}' to the code rules' `imports`" in str(caught.value)


@pytest.mark.parametrize(
    'code',
    [
        'import math',
        'from math import sqrt',
        'from math import *',
        'import xml.dom.minidom',
        'from xml import dom',
        'from xml.dom import minidom',
        'from os import path',
        'import os.path as p',
        "__import__('xml.dom')",
        "import importlib\nimportlib.import_module('xml.dom')",
        "import importlib\nimportlib.import_module('.dom', 'xml')",
        "import importlib\nimportlib.__import__('xml.dom')",
        'from datetime import datetime, timezone',
    ],
)
def test_user_code_may_import_what_is_on_the_list_at_run_time(guest: Guest, code: str) -> None:
    guest.rules = CodeRules(imports=('math', 'importlib', 'xml.*', 'os.path', 'datetime'))
    guest.run(code)


def test_a_listed_module_may_import_what_it_needs_for_itself(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ('calendar', 'locale'):
        monkeypatch.delitem(sys.modules, module, raising=False)
    guest.rules = CodeRules(imports=('calendar',))
    guest.run('import calendar\ncalendar.month(2024, 2)')
    assert 'locale' in sys.modules


def test_library_code_called_by_a_cell_may_import_by_name(guest: Guest) -> None:
    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    guest.rules = CodeRules(imports=())
    names = guest.run('module = load("colorsys")', load=load)
    assert names['module'] is sys.modules['colorsys']


def test_a_relative_import_passes_at_run_time(guest: Guest) -> None:
    guest.rules = CodeRules(imports=())
    code = compile('from . import dom', CELL, 'exec')
    names: dict[str, object] = {'__name__': 'xml.cell', '__package__': 'xml'}
    exec(code, names)
    assert names['dom'] is sys.modules['xml.dom']


def test_a_cell_may_fall_back_when_its_import_is_refused(guest: Guest) -> None:
    guest.rules = CodeRules(imports=('math',))
    names = guest.run('try:\n    import colorsys\nexcept ImportError:\n    colorsys = None')
    assert names['colorsys'] is None


def test_a_refusal_at_run_time_knows_its_line(guest: Guest) -> None:
    guest.rules = CodeRules(imports=())
    with pytest.raises(CodeRulesError) as caught:
        guest.run('x = 1\n\nimport colorsys')
    assert caught.value.line == 3


@pytest.mark.parametrize('rules', [None, CodeRules(), CodeRules(calls=True, strings=True), CodeRules(imports=('*',))])
def test_without_a_list_every_import_passes(guest: Guest, rules: CodeRules | None) -> None:
    guest.rules = rules
    guest.run("import colorsys, importlib\nfrom os import path\nimportlib.import_module('colorsys')")


def test_without_a_list_no_frame_is_looked_at() -> None:
    def never(frame: FrameType) -> bool:
        raise AssertionError(frame)

    gate = ImportGate()
    gate.install(lambda: None, never)
    try:
        exec(compile("import importlib\nimportlib.import_module('colorsys')", CELL, 'exec'), {})
    finally:
        gate.uninstall()


def test_the_rules_of_the_moment_count(guest: Guest) -> None:
    names = guest.run('def load():\n    import colorsys\n    return colorsys')
    load = names['load']
    assert isinstance(load, Callable)
    guest.rules = CodeRules(imports=())
    with pytest.raises(RefusedImport):
        load()
    guest.rules = CodeRules(imports=('colorsys',))
    load()


def import_functions() -> tuple[object, ...]:
    return builtins.__import__, importlib.__import__, importlib.import_module


def test_uninstalling_puts_the_import_functions_back() -> None:
    before = import_functions()
    gate = ImportGate()
    gate.install(lambda: CodeRules(imports=()), is_cell)
    assert all(now is not then for now, then in zip(import_functions(), before, strict=True))
    gate.uninstall()
    gate.uninstall()
    assert import_functions() == before


def test_installing_twice_replaces_the_first_gate() -> None:
    before = import_functions()
    gate = ImportGate()
    gate.install(lambda: CodeRules(imports=()), is_cell)
    gate.install(lambda: None, is_cell)
    try:
        exec(compile('import colorsys', CELL, 'exec'), {})
    finally:
        gate.uninstall()
    assert import_functions() == before


def test_an_import_that_fails_for_its_own_reasons_still_says_so(guest: Guest) -> None:
    guest.rules = CodeRules(imports=('no_such_module_here',))
    with pytest.raises(ModuleNotFoundError, match='no_such_module_here') as caught:
        guest.run('import no_such_module_here')
    assert not isinstance(caught.value, CodeRulesError)
