"""Tables of values that one test goes through.

`pytest.mark.parametrize` makes a test of each row, which every worker collects and reports: milliseconds, where the row
itself takes microseconds. Use `each_case` for such rows, and `parametrize` where a row takes time or needs fixtures.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Test = Callable[..., None]


def each_case(names: str | Sequence[str], values: Iterable[Sequence[object] | object]) -> Callable[[Test], Test]:
    """Call a test with each of the values, like `pytest.mark.parametrize`. All cases that fail are reported."""
    keys = [name.strip() for name in names.split(',')] if isinstance(names, str) else [*names]
    cases = [_named(keys, value) for value in values]

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)

        def run_all(**fixtures: object) -> None:
            failed = [error for case in cases if (error := _failure(test, case, fixtures)) is not None]
            if failed:
                msg = f'{len(failed)} of {len(cases)} cases failed'
                raise BaseExceptionGroup(msg, failed)

        run_all.__name__, run_all.__doc__, run_all.__module__ = test.__name__, test.__doc__, test.__module__
        others = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        run_all.__signature__ = signature.replace(parameters=others)  # pyright: ignore[reportFunctionMemberAccess]
        return run_all

    return decorate


def _named(keys: Sequence[str], value: Any) -> dict[str, object]:
    return dict(zip(keys, value, strict=True)) if len(keys) > 1 else {keys[0]: value}


def _failure(test: Test, case: dict[str, object], fixtures: dict[str, object]) -> BaseException | None:
    try:
        test(**fixtures, **case)
    except (Exception, pytest.fail.Exception) as error:
        error.add_note(f'in the case {case!r}')
        return error
    return None
