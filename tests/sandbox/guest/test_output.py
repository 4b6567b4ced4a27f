"""The streams of a cell."""

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from habilis.sandbox.guest.bridge import Bridge
from habilis.sandbox.guest.output import EAGER_WRITES, SLOW_SECONDS, HostStream


@pytest.fixture
def _eager_threads() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures('_eager_threads')
def test_nothing_that_threads_print_is_lost_or_repeated() -> None:
    sent: list[str] = []

    def send(message: str) -> str:
        sent.append(message[1:])
        return ''

    stream = HostStream(Bridge(send), 'o', '<stdout>')
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(stream.write, (f'{number}\n' for number in range(2_000))))
    stream.flush()
    assert sorted(map(int, ''.join(sent).split())) == list(range(2_000))


def test_lines_that_come_slowly_are_sent_at_once_after_any_number_of_others() -> None:
    sent: list[str] = []

    def send(message: str) -> str:
        sent.append(message[1:])
        return ''

    stream = HostStream(Bridge(send), 'o', '<stdout>')
    for number in range(EAGER_WRITES + 1):
        stream.write(f'{number}\n')
    time.sleep(SLOW_SECONDS * 2)
    stream.write('late\n')
    assert sent[-1].endswith('late\n')


def test_the_clock_of_the_host_is_not_asked_for_the_first_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask() -> float:
        raise AssertionError

    monkeypatch.setattr(time, 'monotonic', ask)
    stream = HostStream(Bridge(lambda _message: ''), 'o', '<stdout>')
    for _ in range(EAGER_WRITES - 1):
        stream.write('line\n')
    with pytest.raises(AssertionError):
        stream.write('line\n')
