"""Values inside nested data."""

import re

_STEP = r'[^.\[\]]+'
_PATH = re.compile(rf'(?:{_STEP})?(?:\.{_STEP}|\[{_STEP}\])*')
_INDEX = re.compile(r'-?\d+')


def value_at_path(data: dict | list, path: str | list[str | int]) -> dict | list | str | int | float | bool | None:
    """Value inside nested dicts and lists (JSON) at a path like "users[0].name" or "users.0.name".

    A negative index counts from the end. A path may be a list, for keys with dots: ["a.b", 0]. Raises `ValueError` if
    there is nothing at the path.
    """
    if isinstance(path, str) and not _PATH.fullmatch(path):
        raise ValueError(f'{path!r} is not a path like "users[0].name"')
    value = data
    for step in re.findall(_STEP, path) if isinstance(path, str) else path:
        value = _inside(value, step, path)
    return value


def _inside(
    value: object, step: str | int, path: str | list[str | int]
) -> dict | list | str | int | float | bool | None:
    if isinstance(value, dict):
        if step in value:
            return value[step]
        raise ValueError(f'there is no {step!r} of {path!r}; the keys there are {list(value)}')
    if isinstance(value, list):
        if _INDEX.fullmatch(str(step)) and -len(value) <= int(step) < len(value):
            return value[int(step)]
        raise ValueError(f'there is no item {step!r} of {path!r}; the list there has {len(value)}')
    raise ValueError(f'there is no {step!r} of {path!r}; the value there is {value!r}')
