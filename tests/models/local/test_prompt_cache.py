"""Evaluated beginnings on disk: found again, never mixed up, never damaged, never too many."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from habilis.models.local import prompt_cache
from habilis.models.local.backend import ChatTurn
from habilis.models.local.prompt_cache import MAX_FILES, PromptCache, common_prefix, folder, system_turn

PROMPT = 'You write Python. ' * 40


@pytest.fixture
def weights(cache: Path, tmp_path: Path) -> Path:
    path = tmp_path / 'own.gguf'
    path.write_bytes(b'GGUF')
    return path


def keep(kept: PromptCache, text: str, state: bytes = b'state') -> None:
    draft = kept.draft(text)
    draft.write_bytes(state)
    kept.keep(text, draft)


def test_what_was_kept_is_found_by_the_next_process(weights: Path) -> None:
    keep(PromptCache(weights, 'backend 1'), PROMPT)
    found = PromptCache(weights, 'backend 1').find(PROMPT)
    assert found is not None
    assert found.read_bytes() == b'state'


def test_another_prompt_backend_or_file_has_its_own(weights: Path) -> None:
    keep(PromptCache(weights, 'backend 1'), PROMPT)
    assert PromptCache(weights, 'backend 1').find(PROMPT + '!') is None
    assert PromptCache(weights, 'backend 2').find(PROMPT) is None
    weights.write_bytes(b'GGUF, but another')
    assert PromptCache(weights, 'backend 1').find(PROMPT) is None


@pytest.mark.parametrize('damaged', [b'', b'stat', b'statE', b'state and more'])
def test_a_damaged_file_is_ignored_and_removed(weights: Path, damaged: bytes) -> None:
    kept = PromptCache(weights, 'backend 1')
    keep(kept, PROMPT)
    [path] = folder().iterdir()
    path.write_bytes(damaged)
    assert kept.find(PROMPT) is None
    assert not path.exists()


def test_only_the_newest_files_stay(weights: Path) -> None:
    kept = PromptCache(weights, 'backend 1')
    for number in range(MAX_FILES + 3):
        keep(kept, f'{PROMPT}{number}')
        path = kept.find(f'{PROMPT}{number}')
        assert path is not None
        os.utime(path, (number, number))
    assert len(list(folder().iterdir())) == MAX_FILES
    assert kept.find(f'{PROMPT}0') is None
    assert kept.find(f'{PROMPT}{MAX_FILES + 2}') is not None


def test_large_files_push_out_old_ones_but_never_the_new_one(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt_cache, 'MAX_BYTES', 100)
    kept = PromptCache(weights, 'backend 1')
    keep(kept, PROMPT, b'x' * 60)
    keep(kept, f'{PROMPT}2', b'x' * 200)
    assert kept.find(PROMPT) is None
    assert kept.find(f'{PROMPT}2') is not None


def test_a_cache_that_cannot_be_written_does_no_harm(weights: Path) -> None:
    kept = PromptCache(weights, 'backend 1')
    kept.keep(PROMPT, folder() / 'never written')
    assert kept.find(PROMPT) is None


def test_only_a_long_leading_system_message_is_worth_it() -> None:
    system, user = ChatTurn(role='system', content=PROMPT), ChatTurn(role='user', content=PROMPT)
    assert system_turn((system, user)) == system
    assert system_turn((user, system)) is None
    assert system_turn((ChatTurn(role='system', content='Be brief.'), user)) is None
    assert system_turn(()) is None


@given(st.text(), st.text(), st.text())
def test_what_two_texts_share(start: str, one: str, other: str) -> None:
    both = common_prefix(start + one, start + other)
    assert both.startswith(start)
    assert (start + one).startswith(both)
    assert (start + other).startswith(both)
    longer = len(both) + 1
    assert (start + one)[:longer] != (start + other)[:longer] or start + one == start + other == both
