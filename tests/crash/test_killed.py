"""A run is killed anywhere, and gone on with: it ends as if nothing had happened."""

import os
import random

import pytest

from tests.crash.killing import MOST, House, killed_at_random, told, troubled_at_each_write
from tests.crash.stores import STORES
from tests.crash.troubled import Trouble

SEED = 'HABILIS_CRASH_SEED'
"""The variable of the environment with the number that chance begins with, to have the same deaths again."""


def _seed() -> int:
    seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(1 << 32))
    print(f'{SEED}={seed}')
    return seed


def _every(stride: int, *stores: str, marks: tuple[pytest.MarkDecorator, ...] = ()) -> list[object]:
    return [pytest.param(store, stride, marks=marks, id=f'{store} every {stride}') for store in stores]


@pytest.mark.slow
@pytest.mark.parametrize('trouble', ['dies before', 'dies after'])
@pytest.mark.parametrize(
    ('house', 'stride'),
    [*_every(5, 'sqlite'), *_every(15, *STORES[1:]), *_every(1, *STORES, marks=(pytest.mark.crash,))],
    indirect=['house'],
)
def test_killed_at_a_write(house: House, stride: int, trouble: Trouble) -> None:
    """With a stride, at other writes each time: so the short form comes to all of them, too."""
    seed = _seed()
    with told(seed=seed):
        troubled_at_each_write(house, trouble, stride, random.Random(seed).randint(1, stride))


@pytest.mark.slow
@pytest.mark.parametrize(
    ('house', 'times'),
    [
        *(pytest.param(store, 4) for store in STORES),
        *(pytest.param(store, 200, marks=pytest.mark.crash) for store in STORES),
    ],
    indirect=['house'],
)
def test_killed_at_any_moment(house: House, times: int) -> None:
    seed = _seed()
    with told(seed=seed):
        killed_at_random(house, random.Random(seed), times)


@pytest.mark.slow
@pytest.mark.parametrize(
    ('house', 'at'),
    [
        *(pytest.param(store, 8) for store in STORES),
        *(pytest.param(store, 3, marks=pytest.mark.crash) for store in STORES),
    ],
    indirect=['house'],
)
def test_killed_again_and_again(house: House, at: int) -> None:
    """Each process makes a few writes only. It takes many of them, and they come to the end."""
    case, expected = house.case(), house.expected
    ended = case.attempt(trouble='dies before', at=10)
    while ended.killed:
        assert case.kills < MOST
        ended = case.attempt(trouble='dies before', at=at)
    case.check(ended, expected)
    assert case.kills > len(expected.writes) // (2 * at)
    house.check_leftovers()


@pytest.mark.slow
@pytest.mark.parametrize('trouble', ['fails before', 'fails after'])
@pytest.mark.parametrize('stride', [10, pytest.param(1, marks=pytest.mark.crash)])
def test_refused_once(house: House, trouble: Trouble, stride: int) -> None:
    """A write that fails, whether it was made or not, ends the process, and nothing comes of it but that."""
    seed = _seed()
    with told(seed=seed):
        troubled_at_each_write(house, trouble, stride, random.Random(seed).randint(1, stride))
