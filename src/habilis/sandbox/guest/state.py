"""Saving and restoring the variables of a sandbox.

Functions and classes of the cells are saved by value, modules and host tools by name, and everything in one pickle, so
that two names of one list still share it afterwards. A variable that cannot be saved is reported. Only a sandbox reads
a saved state; the host stores it as bytes.
"""

from __future__ import annotations

import functools
import importlib
import io
import linecache
import marshal
import pickle
import sys
import types
import typing
from collections.abc import Callable
from typing import Any, cast

import cloudpickle  # pyright: ignore[reportMissingTypeStubs]

from habilis.sandbox.guest.tracebacks import CELL_PREFIX, remember_source

QUICK_BYTES = 2000
_SIZED = frozenset({str, bytes, bytearray, list, tuple, dict, set, frozenset})
_QUICK_TYPES = frozenset({int, float, bool, str, bytes, type(None), complex})
_REMEMBER_NAMESPACE = b'\x80\x05N' + pickle.BINPERSID + pickle.MEMOIZE + pickle.POP
_dumps = pickle.dumps
_NO_SOURCES = pickle.dumps({}, 5)
max_bytes: int | None = None
"""Size of the saved variables; larger ones are not saved. Set by a backend that sends them through a pipe."""

Values = dict[str, object]
_Pickler: Any = cloudpickle.Pickler


class Saver(_Pickler):
    """Pickles values of one namespace. The namespace itself is saved as a reference, for the globals of functions."""

    def __init__(self, file: io.BytesIO, namespace: Values, shared: Values) -> None:
        _Pickler.__init__(self, file, protocol=5)
        self._namespace = namespace
        self._shared = {id(thing): name for name, thing in shared.items()}
        self.filenames: set[str] = set()  # of the cells that define the functions
        # `persistent_id` would be called for every number and string, and take ten times as long as all the rest. So
        # the namespace is the first entry of the memo, and shared objects are saved by the reducer.
        file.write(_REMEMBER_NAMESPACE)
        self.memo = {id(namespace): (0, namespace)}

    def reducer_override(self, obj: object) -> object:
        """Shared objects and modules are saved by name, functions of the cells with the shared namespace; the rest as
        cloudpickle does it."""
        if name := self._shared.get(id(obj)):
            return (_shared_object, (name,))
        if isinstance(obj, types.ModuleType) and sys.modules.get(obj.__name__) is obj:
            return (_module, (obj.__name__,))
        if type(obj) is types.FunctionType and obj.__globals__ is self._namespace:
            self.filenames.add(obj.__code__.co_filename)
            made = (marshal.dumps(obj.__code__), self._namespace, obj.__name__, obj.__closure__)
            return (_make_function, made, _function_state(obj), None, None, _set_function)
        if type(obj) is types.CellType:
            return (types.CellType, (), _cell_contents(obj), None, None, _set_cell)
        if isinstance(obj, io.TextIOWrapper) or (type(obj).__module__ == 'ctypes' and hasattr(obj, '_FuncPtr')):
            msg = 'an open file or a native library'
            raise pickle.PicklingError(msg)
        reduced = _Pickler.reducer_override(self, obj)
        by_name = isinstance(obj, (type, types.FunctionType)) or type(obj) in self.dispatch_table
        return _reduce(obj) if reduced is NotImplemented and not by_name else reduced


class Loader(pickle.Unpickler):
    """Reads what `Saver` wrote, into a namespace."""

    def __init__(self, file: io.BytesIO, namespace: Values, shared: Values) -> None:
        super().__init__(file)
        self._namespace = namespace
        self._shared = shared

    def persistent_load(self, pid: object) -> object:
        """The namespace: the only persistent id."""
        return self._namespace

    def find_class(self, module_name: str, global_name: str, /) -> object:
        """Resolve shared objects to those of this sandbox."""
        if module_name == __name__ and global_name == _shared_object.__name__:
            return self._shared_object
        return super().find_class(module_name, global_name)

    def _shared_object(self, name: str) -> object:
        if name not in self._shared:
            msg = f'it uses the tool {name!r}, which this sandbox does not have'
            raise LookupError(msg)
        return self._shared[name]


def save(values: Values, namespace: Values, shared: Values) -> tuple[bytes, list[str]]:
    """The values as bytes, and the names that could not be saved.

    `shared` are objects that every sandbox has, tools and streams: references to them are saved by name.
    """
    small = {name: value for name, value in values.items() if not _is_large(value)}
    try:
        kept, data = small, _save_together(small, namespace, shared)
    except BaseException:  # code of the user runs here
        kept = {name: value for name, value in small.items() if _saved_size(name, value, namespace, shared) is not None}
        data = _save_together(kept, namespace, shared)
    while max_bytes is not None and len(data) > max_bytes:
        largest = max(kept, key=lambda name: _saved_size(name, kept[name], namespace, shared) or 0)
        kept = {name: value for name, value in kept.items() if name != largest}
        data = _save_together(kept, namespace, shared)
    return data, sorted(values.keys() - kept.keys())


def quick_save(values: Values) -> bytes | None:
    """The values as bytes if they are a few numbers and short strings. None otherwise."""
    size = 0
    for value in values.values():
        if type(value) not in _QUICK_TYPES:
            return None
        size += 20 + len(value) if isinstance(value, (str, bytes)) else 20
        if size > QUICK_BYTES:
            return None
    return _dumps(values, 5) + _NO_SOURCES


def same(values: Values, others: Values) -> bool:
    """Whether both hold the same objects. All that `quick_save` accepts is immutable, so then nothing has changed."""
    if len(values) != len(others):
        return False
    missing = others  # a sentinel that is no value of a cell
    return all(others.get(name, missing) is value for name, value in values.items())


def load(data: bytes, namespace: Values, shared: Values) -> None:
    """Put saved values into the namespace."""
    file = io.BytesIO(data)
    values: Values = Loader(file, namespace, shared).load()
    sources: dict[str, str] = pickle.load(file)  # with a new memo
    namespace.update(values)
    for filename, source in sources.items():
        remember_source(filename, source)


def _save_together(values: Values, namespace: Values, shared: Values) -> bytes:
    """The values, then the source of the cells that their functions come from."""
    file = io.BytesIO()
    saver = Saver(file, namespace, shared)
    saver.dump(values)
    sources = {name: ''.join(linecache.getlines(name)) for name in saver.filenames if name.startswith(CELL_PREFIX)}
    file.write(_dumps(sources, 5))
    return file.getvalue()


def _module(name: str) -> types.ModuleType:
    return importlib.import_module(name)


def _shared_object(name: str) -> object:
    """Placeholder for a shared object; `Loader` resolves it."""
    raise LookupError(name)


def _saved_size(name: str, value: object, namespace: Values, shared: Values) -> int | None:
    """Bytes of a value alone; None if it cannot be saved."""
    try:
        return len(_save_together({name: value}, namespace, shared))
    except BaseException:
        return None


def _is_large(value: object) -> bool:
    """Whether data, an array or a table is known to be too large, without saving it."""
    if max_bytes is None:
        return False
    if type(value) in _SIZED:  # each item takes a byte at least
        return len(cast('Any', value)) > max_bytes
    if type(value).__module__.partition('.')[0] not in ('numpy', 'pandas'):
        return False
    try:
        table: Any = value
        size = table.memory_usage(index=False) if hasattr(table, 'memory_usage') else table.nbytes
        return int(getattr(size, 'sum', lambda: size)()) > max_bytes
    except Exception:  # a type of these packages that is neither
        return False


def _reduce(obj: object) -> object:
    """How to rebuild an object that is neither a function nor a class.

    Some would be looked up in `__main__` by name, where they do not exist yet during loading.
    """
    if isinstance(obj, BaseException) and type(obj).__reduce__ is BaseException.__reduce__:
        return (_make_exception, (type(obj), obj.args), obj.__dict__)  # its `__init__` may take other arguments
    reduced: object = obj.__reduce_ex__(5)
    if not isinstance(reduced, str) or getattr(obj, '__module__', None) != '__main__':
        return reduced
    if isinstance(obj, functools._lru_cache_wrapper):  # pyright: ignore[reportPrivateUsage]
        return (_make_cached, (obj.__wrapped__, obj.cache_parameters()))
    if sys.version_info >= (3, 10) and isinstance(obj, (typing.NewType, typing.ParamSpec)):
        return (type(obj), (obj.__name__, *([obj.__supertype__] if isinstance(obj, typing.NewType) else [])))
    msg = f'{reduced} can only be found by its name'
    raise pickle.PicklingError(msg)


def _make_exception(kind: type[BaseException], args: tuple[object, ...]) -> BaseException:
    return kind.__new__(kind, *args)


def _make_cached(function: Callable[..., object], parameters: dict[str, Any]) -> object:
    return functools.lru_cache(**parameters)(function)


def _make_function(
    code: bytes, namespace: Values, name: str, closure: tuple[types.CellType, ...] | None
) -> types.FunctionType:
    return types.FunctionType(marshal.loads(code), namespace, name, None, closure)


def _function_state(function: types.FunctionType) -> Values:
    names = ['__defaults__', '__kwdefaults__', '__doc__', '__module__', '__qualname__']
    if hasattr(function, '__type_params__'):
        names.append('__type_params__')
    # Python 3.14 evaluates annotations on access, which may fail now and work later.
    names.append('__annotate__' if getattr(function, '__annotate__', None) else '__annotations__')
    return {**function.__dict__, **{name: getattr(function, name) for name in names}}


def _set_function(function: types.FunctionType, state: Values) -> None:
    for name, value in state.items():
        setattr(function, name, value)


def _cell_contents(cell: types.CellType) -> tuple[object, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # empty: a name that is not bound yet
        return ()


def _set_cell(cell: types.CellType, state: tuple[object, ...]) -> None:
    if state:
        cell.cell_contents = state[0]
