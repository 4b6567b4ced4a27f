"""Which steps an error went through."""

import contextlib
from typing import cast


def marked(error: Exception, path: str) -> Exception:
    """The error, with the paths of the steps that it went through."""
    paths = cast('tuple[str, ...]', getattr(error, 'habilis_paths', ()))
    with contextlib.suppress(AttributeError, TypeError):
        error.habilis_paths = (*paths, path)  # pyright: ignore[reportAttributeAccessIssue]
    return error


def failed_paths(error: BaseException) -> list[str]:
    """The steps that an error went through, the innermost first; also those of the errors that it came of."""
    return list(dict.fromkeys(_paths_of(error, set())))


def _paths_of(error: BaseException, seen: set[int]) -> list[str]:
    if id(error) in seen:
        return []
    seen.add(id(error))
    own = list(cast('tuple[str, ...]', getattr(error, 'habilis_paths', ())))
    inner: list[str] = []
    if isinstance(error, BaseExceptionGroup):
        group = cast('BaseExceptionGroup[BaseException]', error)
        inner = [path for each in group.exceptions for path in _paths_of(each, seen)]
    if error.__cause__ is not None:
        inner += _paths_of(error.__cause__, seen)
    if error.__context__ is not None:
        # A step that fails while another failure is handled did not come of that; code around both did.
        around = f'{own[0]}/' if own else ''
        inner += [path for path in _paths_of(error.__context__, seen) if path.startswith(around)]
    return [*inner, *own]
