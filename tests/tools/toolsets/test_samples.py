"""The sample tools."""

import pytest

from habilis.tools import Toolbox, samples_toolset

SOURCE = 'sample data, not real'


@pytest.mark.parametrize(
    ('name', 'arguments'), [('weather', ('Oslo',)), ('traffic', ('Oslo', 'Bergen')), ('weather', ('\ud800',))]
)
async def test_a21_samples_are_marked_and_the_same_each_time(name: str, arguments: tuple[str, ...]) -> None:
    box = Toolbox([samples_toolset()])
    first = await box.call(name, *arguments)
    assert isinstance(first, dict)
    assert first['source'] == SOURCE
    assert await box.call(name, *arguments) == first


async def test_a21_samples_differ_between_places() -> None:
    box = Toolbox([samples_toolset()])
    cities = ['Oslo', 'Rome', 'Cairo', 'Lima', 'Tokyo', 'Paris']
    assert len({str(await box.call('weather', city)).partition('sky')[2] for city in cities}) > 3


def test_a21_the_stubs_say_that_it_is_not_real() -> None:
    assert Toolbox([samples_toolset()]).stubs().count(f'({SOURCE})') == 2
