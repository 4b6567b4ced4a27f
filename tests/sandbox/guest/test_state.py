"""What is saved of the variables of a sandbox."""

from typing import Any

import pytest

from habilis.sandbox.guest import state


class Watched:
    """Counts how often it is saved."""

    saved = 0

    def __reduce__(self) -> Any:
        Watched.saved += 1
        return (Watched, ())


@pytest.mark.parametrize('items', [[Watched()] * 1001, (Watched(),) * 1001, dict.fromkeys(range(1001), Watched())])
def test_what_is_surely_too_large_is_left_out_without_being_saved(
    items: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, 'max_bytes', 1000)
    monkeypatch.setattr(Watched, 'saved', 0)
    large: dict[str, object] = {'items': items, 'data': bytearray(1001), 'text': 'x' * 1001}
    data, lost = state.save({**large, 'kept': 'y' * 900}, {}, {})
    assert lost == sorted(large)
    assert Watched.saved == 0
    namespace: dict[str, object] = {}
    state.load(data, namespace, {})
    assert namespace == {'kept': 'y' * 900}
