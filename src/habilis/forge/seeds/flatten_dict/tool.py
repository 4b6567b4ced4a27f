"""Nested data as one flat dict."""

from collections.abc import Iterator


def flatten_dict(data: dict, separator: str = '.') -> dict:
    """Flat dict of nested dicts and lists (JSON), with keys like "user.address.city" and "tags.0".

    Empty dicts and lists are kept as values. Raises `ValueError` if two values would have the same key.
    """
    flat = {}
    for path, value in _leaves(data, []):
        key = separator.join(path)
        if key in flat:
            raise ValueError(f'two values have the key {key!r}; choose another separator')
        flat[key] = value
    return flat


def _leaves(data: dict | list, path: list[str]) -> Iterator[tuple[list[str], object]]:
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        here = [*path, str(key)]
        if isinstance(value, dict | list) and value:
            yield from _leaves(value, here)
        else:
            yield here, value
