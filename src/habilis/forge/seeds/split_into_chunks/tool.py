"""Lists in chunks."""


def split_into_chunks(items: list, size: int) -> list[list]:
    """Chunks (batches, pages) of a list with at most so many items each; the last one may be shorter.

    Raises `ValueError` for a size below 1.
    """
    if size < 1:
        raise ValueError(f'a chunk needs a size of at least 1, not {size}')
    return [items[start : start + size] for start in range(0, len(items), size)]
