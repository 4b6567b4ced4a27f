"""Failures of steps: exceptions as data and back, and the paths of the steps that an exception passed through."""

import builtins
import contextlib
import sys
from collections.abc import Iterator, Sequence

from habilis.core import codec
from habilis.core.codec import Json, NotPlain
from habilis.core.narrowing import expect_list, fields_in, is_group

_MAX_DEPTH = 8


class StepFailed(Exception):
    """An error of a step whose class is not loaded in this process.

    Its own class is a subclass with the original name, and of the same built-in exception, so that `except` clauses
    for that one match.
    """


def encode_error(error: BaseException, *, depth: int = 0) -> Json:
    """An exception as data."""
    written: dict[str, Json] = {
        'module': type(error).__module__,
        'type': type(error).__qualname__,
        'text': message_of(error),
        'args': _plain(_args_of(error)),
        'base': _built_in(type(error)).__name__,
    }
    fields = {name: value for name, value in vars(error).items() if name != 'habilis_paths' and _is_plain(value)}
    if fields:
        written['fields'] = codec.pack(fields)
    if is_group(error) and depth < _MAX_DEPTH:
        written['inner'] = [encode_error(each, depth=depth + 1) for each in error.exceptions]
    return written


def _args_of(error: BaseException) -> list[object]:
    """The arguments to construct it with."""
    if is_group(error):
        return [error.message]
    if isinstance(error, OSError) and error.errno is not None:
        files = [error.filename, None, error.filename2] if error.filename is not None else []
        return [error.errno, error.strerror, *files]
    return list(error.args)


def _plain(values: list[object]) -> Json:
    return codec.pack(values) if _is_plain(values) else None


def _is_plain(value: object) -> bool:
    try:
        codec.pack(value)
    except NotPlain:
        return False
    return True


def decode_error(written: Json) -> Exception:
    """The exception from its data, of the same class if that is loaded here, so that `except` clauses match again.

    Nothing is imported, and only constructors of built-in exceptions run: the content of a store must not be able to
    execute code in this process.
    """
    fields = written if isinstance(written, dict) else {}
    name, text = str(fields.get('type', 'StepFailed')), str(fields.get('text', ''))
    base = _exception(fields.get('base'))
    try:
        arguments, kind = _arguments(fields, text), _loaded(str(fields.get('module')), name, base)
        error = None if kind is None else _construct(kind, arguments)
        for given in (arguments, [text]) if error is None else ():
            made = _construct(_stand_in(name, base), given)
            if made is not None and text in message_of(made):
                error = made
                break
        attributes = codec.unpack(fields.get('fields'))
        if error is not None:
            vars(error).update(fields_in(attributes))
    except (TypeError, ValueError, RecursionError):  # not the output of `encode_error`
        error = None
    return _stand_in(name, Exception)(text) if error is None else error


def _loaded(module: str, name: str, base: type[Exception]) -> type[Exception] | None:
    """A class of a loaded module. Read from `vars`, because `getattr` on a module may import more."""
    if '<locals>' in name:  # a class of a function: the latest one, if the function was called several times
        local = [kind for kind in _subclasses(base) if (kind.__module__, kind.__qualname__) == (module, name)]
        return local[-1] if local else None
    found: object = sys.modules.get(module)
    for part in name.split('.'):
        found = vars(found).get(part) if found is not None and hasattr(found, '__dict__') else None
    return found if isinstance(found, type) and issubclass(found, Exception) else None


def _subclasses(kind: type[Exception]) -> Iterator[type[Exception]]:
    for each in type.__subclasses__(kind):
        yield each
        yield from _subclasses(each)


def _stand_in(name: str, base: type[Exception]) -> type[Exception]:
    """A class for one that is not loaded."""
    last = name.rpartition('.')[2]
    bases = (StepFailed,) if issubclass(StepFailed, base) else (StepFailed, base)
    return type(last if last.isidentifier() else 'StepFailed', bases, {})


def _exception(name: Json) -> type[Exception]:
    """The built-in exception of this name. Groups need more than a message, so they count as `Exception`."""
    found: object = vars(builtins).get(name) if isinstance(name, str) else None
    if isinstance(found, type) and issubclass(found, Exception) and not issubclass(found, ExceptionGroup):
        return found
    return Exception


def _built_in(kind: type[BaseException]) -> type[BaseException]:
    return next(base for base in kind.__mro__ if vars(builtins).get(base.__name__) is base)


def _arguments(fields: dict[str, Json], text: str) -> list[object]:
    args, inner = fields.get('args'), fields.get('inner')
    arguments: list[object] = [text] if args is None else expect_list(codec.unpack(args))
    return [*arguments, [decode_error(each) for each in inner]] if isinstance(inner, list) else arguments


def _construct(kind: type[Exception], args: Sequence[object]) -> Exception | None:
    """An instance of the class, constructed by its nearest built-in base class."""
    for base in kind.__mro__:
        if vars(builtins).get(base.__name__) is not base or not issubclass(base, Exception):
            continue
        try:
            error = base.__new__(kind, *args)
            base.__init__(error, *args)
        except TypeError:  # wrong arguments, or an incompatible memory layout
            continue
        return error
    return None


def message_of(error: BaseException) -> str:
    """Its message; empty if its `__str__` raises."""
    try:
        return str(error)
    except Exception:
        return ''


# Paths ----------------------------------------------------------------------------------------------------------------


def add_path(error: Exception, path: str) -> Exception:
    """Add a path to the steps that an error passed through; returns the error."""
    paths: tuple[str, ...] = getattr(error, 'habilis_paths', ())
    with contextlib.suppress(AttributeError, TypeError):
        error.habilis_paths = (*paths, path)  # pyright: ignore[reportAttributeAccessIssue]
    return error


def failed_paths(error: BaseException) -> list[str]:
    """The steps that an error passed through, innermost first, including those of its causes."""
    return list(dict.fromkeys(_paths_of(error, set())))


def _paths_of(error: BaseException, seen: set[int]) -> list[str]:
    if id(error) in seen:
        return []
    seen.add(id(error))
    own: list[str] = [*getattr(error, 'habilis_paths', ())]
    inner: list[str] = []
    if is_group(error):
        inner = [path for each in error.exceptions for path in _paths_of(each, seen)]
    if error.__cause__ is not None:
        inner += _paths_of(error.__cause__, seen)
    if error.__context__ is not None:
        # A step that fails while another failure is handled was not caused by it, unless that one is inside the step.
        prefix = f'{own[0]}/' if own else ''
        inner += [path for path in _paths_of(error.__context__, seen) if path.startswith(prefix)]
    return [*inner, *own]
