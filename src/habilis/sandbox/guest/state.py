"""Saving and restoring the variables of a sandbox.

Functions and classes of the cells travel by value, modules by name, host tools by name, and everything in one pickle,
so that two names for one list still share it afterwards. A name that cannot be saved is reported, never dropped in
silence. Only a sandbox ever reads a saved state; the host carries it as bytes.
"""

import importlib
import io
import marshal
import pickle
import types
from typing import Any, cast

import cloudpickle  # pyright: ignore[reportMissingTypeStubs]

from habilis.sandbox.guest.tools import HostTool

QUICK_BYTES = 2000
_QUICK_TYPES = frozenset({int, float, bool, str, bytes, type(None), complex})
_NAMESPACE, _TOOL, _MODULE = 'namespace', 'tool', 'module'
_dumps = pickle.dumps
Values = dict[str, object]
_Pickler: Any = cloudpickle.Pickler


class Saver(_Pickler):
    """Pickles values of one namespace. The namespace itself is a reference, so functions find their globals again."""

    def __init__(self, file: io.BytesIO, namespace: Values) -> None:
        _Pickler.__init__(self, file, protocol=5)
        self._namespace = namespace

    def persistent_id(self, obj: object) -> tuple[str, str] | None:
        """What is not copied but found again by name."""
        if obj is self._namespace:
            return (_NAMESPACE, '')
        if isinstance(obj, HostTool):
            return (_TOOL, obj.__name__)
        if isinstance(obj, types.ModuleType):
            return (_MODULE, obj.__name__)
        return None

    def reducer_override(self, obj: object) -> Any:
        """Functions of the cells keep the shared namespace; the rest is cloudpickle's."""
        if type(obj) is types.FunctionType and obj.__globals__ is self._namespace:
            state = (obj.__dict__, obj.__defaults__, obj.__kwdefaults__, obj.__doc__, obj.__module__, obj.__qualname__)
            made = (marshal.dumps(obj.__code__), self._namespace, obj.__name__, obj.__closure__)
            return (_make_function, made, state, None, None, _set_function)
        if type(obj) is types.CellType:
            return (types.CellType, (), _cell_contents(obj), None, None, _set_cell)
        return _Pickler.reducer_override(self, obj)


class Loader(pickle.Unpickler):
    """Reads what `Saver` wrote, into a namespace."""

    def __init__(self, data: bytes, namespace: Values, tools: dict[str, HostTool]) -> None:
        super().__init__(io.BytesIO(data))
        self._namespace = namespace
        self._tools = tools

    def persistent_load(self, pid: tuple[str, str]) -> object:
        """Find a thing by name again."""
        kind, name = pid
        if kind == _NAMESPACE:
            return self._namespace
        return self._tools[name] if kind == _TOOL else importlib.import_module(name)


def save(values: Values, namespace: Values) -> tuple[bytes, list[str]]:
    """The values as bytes, and the names that could not be saved."""
    try:
        return _save_together(values, namespace), []
    except Exception:
        kept: Values = {name: value for name, value in values.items() if _can_save(name, value, namespace)}
        return _save_together(kept, namespace), sorted(values.keys() - kept.keys())


def quick_save(values: Values) -> bytes | None:
    """The values as bytes if that is next to free: a handful of numbers and short texts. None otherwise."""
    size = 0
    for value in values.values():
        if type(value) not in _QUICK_TYPES:
            return None
        size += 20 + len(value) if isinstance(value, (str, bytes)) else 20
        if size > QUICK_BYTES:
            return None
    return _dumps(values, 5)


def same(values: Values, others: Values) -> bool:
    """Whether both hold the very same objects. Of those that `quick_save` takes none can change, so nothing has."""
    if len(values) != len(others):
        return False
    missing = others  # no value of a cell is this dict
    return all(others.get(name, missing) is value for name, value in values.items())


def load(data: bytes, namespace: Values, tools: dict[str, HostTool]) -> None:
    """Put saved values into the namespace."""
    namespace.update(cast('Values', Loader(data, namespace, tools).load()))


def _save_together(values: Values, namespace: Values) -> bytes:
    file = io.BytesIO()
    Saver(file, namespace).dump(values)
    return file.getvalue()


def _can_save(name: str, value: object, namespace: Values) -> bool:
    try:
        _save_together({name: value}, namespace)
    except Exception:
        return False
    return True


def _make_function(
    code: bytes, namespace: Values, name: str, closure: tuple[types.CellType, ...] | None
) -> types.FunctionType:
    return types.FunctionType(marshal.loads(code), namespace, name, None, closure)


def _set_function(function: types.FunctionType, state: tuple[Any, ...]) -> None:
    attributes, function.__defaults__, function.__kwdefaults__, function.__doc__, module, qualname = state
    function.__dict__.update(attributes)
    function.__module__, function.__qualname__ = module, qualname


def _cell_contents(cell: types.CellType) -> tuple[object, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # empty: a name that is not bound yet
        return ()


def _set_cell(cell: types.CellType, state: tuple[object, ...]) -> None:
    if state:
        cell.cell_contents = state[0]
