"""Similarity of texts."""


def levenshtein_distance(first: str, second: str) -> int:
    """Edit distance of two texts (Levenshtein): the fewest letters to insert, delete or replace to make them equal."""
    above = list(range(len(second) + 1))
    for row, char in enumerate(first, start=1):
        line = [row]
        for column, other in enumerate(second, start=1):
            replaced = above[column - 1] + (char != other)
            line.append(min(above[column] + 1, line[-1] + 1, replaced))
        above = line
    return above[-1]
