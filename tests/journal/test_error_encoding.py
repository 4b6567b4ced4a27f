"""Errors as data: of the same class again, and nothing that a store says makes this process do things."""

import asyncio
import json
import pathlib
import sys
import types
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.core.codec import Json, dump, parse
from habilis.core.errors import ModelUnavailable, RateLimited, StoreUnavailable
from habilis.journal.failures import StepFailed, decode_error, encode_error
from tests.cases import each_case
from tests.journal.test_encoding import json_values


class Refused(ValueError):
    """With a constructor that takes other arguments."""

    made = 0

    def __init__(self, code: int, *, why: str) -> None:
        super().__init__(f'{code}: {why}')
        type(self).made += 1
        self.code = code
        self.client = object()


class Dangerous(Exception):
    """With a `__new__` that must not run."""

    made = 0

    def __new__(cls, *_: object) -> 'Dangerous':
        """Count."""
        cls.made += 1
        return super().__new__(cls)


class Around:
    """A class with an error inside."""

    class Inner(KeyError):
        """It."""


class TwoBases(KeyError, AttributeError):
    """Of two of Python's own."""


class Lost(ConnectionError):
    """An `OSError` with a constructor of its own."""

    def __init__(self, host: str) -> None:
        super().__init__(104, f'{host} is gone')


def _again(error: Exception) -> Exception:
    return decode_error(parse(dump(encode_error(error))))


def _written(error: Exception) -> dict[str, Json]:
    return cast('dict[str, Json]', parse(dump(encode_error(error))))


def _noted(error: Exception) -> Exception:
    error.add_note('a note')
    return error


def _missing_file() -> Exception:
    try:
        pathlib.Path('/no/such/file').read_bytes()
    except OSError as error:
        return error
    raise AssertionError


def _bad_json() -> Exception:
    try:
        json.loads('{')
    except ValueError as error:
        return error
    raise AssertionError


@each_case(
    'error',
    [
        ValueError('x'),
        ValueError(),
        ValueError('x', 3, ('y', b'z')),
        KeyError('x'),
        KeyError(('a', 1)),
        ZeroDivisionError('division by zero'),
        TimeoutError(),
        _missing_file(),
        OSError('just text'),
        ConnectionResetError(104, 'reset by peer'),
        Lost('example.org'),
        UnicodeDecodeError('utf-8', b'\xff', 0, 1, 'bad'),
        StopAsyncIteration(5),
        ImportError('x', name='y'),
        SyntaxError('bad', ('file', 1, 2, 'text')),
        _bad_json(),
        asyncio.QueueFull(),
        Refused(7, why='because'),
        Around.Inner('x'),
        TwoBases('x'),
        RateLimited('slow down', status=429, retry_after=2.5),
        ModelUnavailable('gone'),
        StoreUnavailable('away', passing=True),
        _noted(ValueError('x')),
        ValueError('\ud800'),
    ],
)
def test_an_error_comes_back_with_its_class_message_and_plain_attributes(error: Exception) -> None:
    read = _again(error)
    assert type(read) is type(error)
    assert (str(read), read.args) == (str(error), error.args)
    plain = {name: value for name, value in vars(error).items() if name != 'client'}
    assert vars(read) == plain


def test_a_missing_file_is_still_named() -> None:
    error = _again(_missing_file())
    assert isinstance(error, FileNotFoundError)
    assert (error.errno, error.filename) == (2, '/no/such/file')


def test_no_constructor_runs() -> None:
    refused, dangerous = Refused(1, why='x'), Dangerous()
    made = (Refused.made, Dangerous.made)
    assert isinstance(_again(refused), Refused)
    assert isinstance(_again(dangerous), Dangerous)
    assert (Refused.made, Dangerous.made) == made


def test_nothing_is_imported_and_no_module_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    lazy, asked = types.ModuleType('lazy_module'), list[str]()

    def on_demand(name: str) -> object:
        asked.append(name)
        return ValueError

    vars(lazy)['__getattr__'] = on_demand
    monkeypatch.setitem(sys.modules, 'lazy_module', lazy)
    for module in ('lazy_module', 'this', 'antigravity'):
        error = decode_error({'module': module, 'type': 'Thing', 'text': 'x', 'args': []})
        assert isinstance(error, StepFailed)
    assert asked == []
    assert 'antigravity' not in sys.modules


@each_case(
    ('module', 'name'),
    [
        ('os', 'system'),
        ('builtins', 'int'),
        ('builtins', 'KeyboardInterrupt'),
        ('builtins', 'SystemExit'),
        ('builtins', 'BaseException'),
        ('builtins', 'ValueError.__init__'),
        ('builtins', '__dict__'),
        ('builtins', ''),
        ('', ''),
        ('sys', 'modules.os.error'),
        ('asyncio', 'CancelledError'),
        ('no.such.module', 'Error'),
        (__name__, '_local.<locals>.Hidden'),
    ],
)
def test_what_is_no_error_of_a_loaded_module_becomes_an_error_that_names_it(module: str, name: str) -> None:
    error = decode_error({'module': module, 'type': name, 'text': 'the text', 'args': ['x']})
    assert isinstance(error, StepFailed)
    last = name.rpartition('.')[2]
    assert type(error).__name__ == (last if last.isidentifier() else 'StepFailed')
    assert str(error) == 'the text'


def _local(base: type[Exception]) -> type[Exception]:
    class Local(base):
        def __str__(self) -> str:
            return f'local {self.args}'

    return Local


@each_case('base', [Exception, ValueError, OSError, UnicodeDecodeError, ExceptionGroup])
def test_an_error_of_a_class_that_is_gone_has_its_name_and_its_base(base: type[Exception]) -> None:
    written = _written(_local(Exception)('x'))
    written = {**written, 'base': base.__name__, 'module': 'gone'}
    for _ in range(2):
        error = decode_error(written)
        assert isinstance(error, StepFailed)
        assert isinstance(error, base) == (base not in {UnicodeDecodeError, ExceptionGroup})
        assert (type(error).__name__, str(error)) == ('Local', "local ('x',)")
        written = _written(error)


def test_an_error_of_a_local_class_comes_back_as_the_latest_one() -> None:
    written = _written(_local(KeyError)('x'))
    latest = _local(KeyError)
    error = decode_error(written)
    assert type(error) is latest
    assert error.args == ('x',)


def test_groups_of_errors_come_back_so_that_their_parts_can_be_caught() -> None:
    inner = ExceptionGroup('inner', [KeyError('k'), Refused(3, why='y')])
    group = cast('ExceptionGroup[Exception]', _again(ExceptionGroup('outer', [ValueError('v'), inner])))
    assert type(group) is ExceptionGroup
    assert group.message == 'outer'
    matched, rest = group.split(KeyError)
    assert matched is not None
    assert rest is not None
    assert [type(error) for error in rest.exceptions] == [ValueError, ExceptionGroup]


def test_an_error_with_arguments_that_are_no_data_keeps_its_message() -> None:
    error = _again(ValueError('x', object))
    assert isinstance(error, ValueError)
    assert "'x'" in str(error)


def test_an_error_that_cannot_say_what_it_is_can_be_written() -> None:
    class Mute(ValueError):
        def __str__(self) -> str:
            raise RuntimeError

    written = cast('dict[str, Json]', encode_error(Mute('x')))
    assert written['text'] == ''


@given(json_values)
def test_any_json_is_read_as_some_error(written: Json) -> None:
    assert isinstance(decode_error(written), Exception)


@given(st.sampled_from(['ValueError', 'OSError', 'ExceptionGroup', 'UnicodeDecodeError']), json_values, json_values)
def test_any_arguments_are_read_as_some_error(name: str, args: Json, fields: Json) -> None:
    error = decode_error(
        {'module': 'builtins', 'type': name, 'text': 't', 'args': args, 'fields': fields, 'inner': args}
    )
    assert isinstance(error, Exception)
