"""Similar names, in bounded time."""

import difflib
from collections.abc import Iterator, Sequence

import pytest

from habilis.core import similar_names as module
from habilis.core.similar_names import MAX_LENGTH, MAX_NAMES, MAX_WORK, similar_names


@pytest.mark.parametrize(
    ('name', 'known'),
    [
        ('modle', ['model', 'models', 'mode', 'timeout']),
        ('anthopic', ['openai', 'anthropic', 'ollama']),
        ('zzz', ['openai', 'anthropic']),
        ('', ['a']),
    ],
)
def test_short_names_are_compared_as_difflib_does(name: str, known: list[str]) -> None:
    for cutoff in (0.4, 0.6, 0.9):
        assert similar_names(name, known, n=3, cutoff=cutoff) == difflib.get_close_matches(name, known, 3, cutoff)  # noqa: TID251


def test_the_work_is_bounded_whatever_the_names_are(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    class Counted(difflib.SequenceMatcher[str]):
        def set_seq1(self, a: Sequence[str]) -> None:
            self.length = len(a)
            super().set_seq1(a)

        def ratio(self) -> float:
            compared.append(self.length)
            return super().ratio()

    monkeypatch.setattr(module, 'SequenceMatcher', Counted)
    seen = 0

    def names(length: int) -> Iterator[str]:
        nonlocal seen
        for number in range(100_000):
            seen += 1
            yield f'{"a" * length}{number:05}'

    for length in (10, 90, 250):
        compared.clear()
        seen = 0
        similar_names('a' * min(length, MAX_LENGTH), names(length))
        assert seen <= MAX_NAMES
        assert sum(compared) * min(length, MAX_LENGTH) <= MAX_WORK
    compared.clear()
    assert similar_names('a' * 3000, ['a' * 3000]) == []
    assert compared == []
