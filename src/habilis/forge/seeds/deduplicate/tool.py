"""Lists without duplicates."""


def deduplicate(items: list) -> list:
    """List without duplicates (unique items), in the order of their first appearance.

    Items may be lists and dicts too. 1 and 1.0 are duplicates; 1 and True are not.
    """
    seen = set()
    unique = []
    for item in items:
        mark = _hashable(item)
        if mark not in seen:
            seen.add(mark)
            unique.append(item)
    return unique


def _hashable(item: object) -> object:
    """Equal for equal items only."""
    if isinstance(item, dict):
        return dict, frozenset((_hashable(key), _hashable(value)) for key, value in item.items())
    if isinstance(item, list | tuple):
        return type(item), tuple(map(_hashable, item))
    if isinstance(item, bool):
        return bool, item
    return item
