"""Evaluated beginnings on disk: found again, never mixed up, never damaged, never too many."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.models.local import prefixes
from habilis.models.local.prefixes import MOST_FILES, Prefixes, beginning, folder, shared
from habilis.models.local.runner import Turn

PROMPT = 'You write Python. ' * 40


@pytest.fixture
def weights(cache: Path, tmp_path: Path) -> Path:
    path = tmp_path / 'own.gguf'
    path.write_bytes(b'GGUF')
    return path


def keep(kept: Prefixes, text: str, state: bytes = b'state') -> None:
    draft = kept.draft(text)
    draft.write_bytes(state)
    kept.keep(text, draft)


def test_what_was_kept_is_found_by_the_next_process(weights: Path) -> None:
    keep(Prefixes(weights, 'runner 1'), PROMPT)
    found = Prefixes(weights, 'runner 1').find(PROMPT)
    assert found is not None
    assert found.read_bytes() == b'state'


def test_another_prompt_runner_or_file_has_its_own(weights: Path) -> None:
    keep(Prefixes(weights, 'runner 1'), PROMPT)
    assert Prefixes(weights, 'runner 1').find(PROMPT + '!') is None
    assert Prefixes(weights, 'runner 2').find(PROMPT) is None
    weights.write_bytes(b'GGUF, but another')
    assert Prefixes(weights, 'runner 1').find(PROMPT) is None


@pytest.mark.parametrize('damaged', [b'', b'stat', b'statE', b'state and more'])
def test_a_damaged_file_is_ignored_and_removed(weights: Path, damaged: bytes) -> None:
    kept = Prefixes(weights, 'runner 1')
    keep(kept, PROMPT)
    [path] = folder().iterdir()
    path.write_bytes(damaged)
    assert kept.find(PROMPT) is None
    assert not path.exists()


def test_only_the_newest_files_stay(weights: Path) -> None:
    kept = Prefixes(weights, 'runner 1')
    for number in range(MOST_FILES + 3):
        keep(kept, f'{PROMPT}{number}')
        path = kept.find(f'{PROMPT}{number}')
        assert path is not None
        os.utime(path, (number, number))
    assert len(list(folder().iterdir())) == MOST_FILES
    assert kept.find(f'{PROMPT}0') is None
    assert kept.find(f'{PROMPT}{MOST_FILES + 2}') is not None


def test_large_files_push_out_old_ones_but_never_the_new_one(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefixes, 'MOST_BYTES', 100)
    kept = Prefixes(weights, 'runner 1')
    keep(kept, PROMPT, b'x' * 60)
    keep(kept, f'{PROMPT}2', b'x' * 200)
    assert kept.find(PROMPT) is None
    assert kept.find(f'{PROMPT}2') is not None


def test_a_cache_that_cannot_be_written_does_no_harm(weights: Path) -> None:
    kept = Prefixes(weights, 'runner 1')
    kept.keep(PROMPT, folder() / 'never written')
    assert kept.find(PROMPT) is None


def test_only_a_long_leading_system_message_is_worth_it() -> None:
    system, user = Turn(role='system', content=PROMPT), Turn(role='user', content=PROMPT)
    assert beginning((system, user)) == system
    assert beginning((user, system)) is None
    assert beginning((Turn(role='system', content='Be brief.'), user)) is None
    assert beginning(()) is None


@given(st.text(), st.text(), st.text())
def test_what_two_texts_share(start: str, one: str, other: str) -> None:
    both = shared(start + one, start + other)
    assert both.startswith(start)
    assert (start + one).startswith(both)
    assert (start + other).startswith(both)
    longer = len(both) + 1
    assert (start + one)[:longer] != (start + other)[:longer] or start + one == start + other == both
