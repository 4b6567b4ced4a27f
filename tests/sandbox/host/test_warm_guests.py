"""Guests that are started ahead: as many as are asked for."""

import threading

import pytest

from habilis.sandbox.contract import HostSide
from habilis.sandbox.host import warm_guests
from habilis.sandbox.host.warm_guests import COUNT, WarmGuests


class FakeGuest:
    """Counts those that live."""

    alive = 0
    changed = threading.Condition()

    def __init__(self) -> None:
        self._count(1)

    def _count(self, difference: int) -> None:
        with FakeGuest.changed:
            FakeGuest.alive += difference
            FakeGuest.changed.notify_all()

    def enter(self, message: str, host: HostSide) -> str:
        return message

    def interrupt(self) -> None: ...

    def close(self) -> None:
        self._count(-1)


def _wait_for(alive: int) -> None:
    with FakeGuest.changed:
        assert FakeGuest.changed.wait_for(lambda: FakeGuest.alive == alive, 60)


def test_more_are_kept_while_many_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_guests, 'DEMAND_SECONDS', 60.0)
    guests = WarmGuests(FakeGuest, most=6)
    assert not guests
    assert guests.take() is None
    _wait_for(COUNT)
    taken = [guest for _ in range(20) if (guest := guests.take()) is not None]
    _wait_for(6 + len(taken))
    monkeypatch.setattr(warm_guests, 'DEMAND_SECONDS', 0.0)  # nobody asks any more
    taken.append(guests.take() or FakeGuest())
    _wait_for(COUNT + len(taken))
    guests._stop()  # pyright: ignore[reportPrivateUsage]
    for guest in taken:
        guest.close()
    assert FakeGuest.alive == 0
