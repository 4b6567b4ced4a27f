"""The toolset `samples`: example tools with invented data, always the same, marked as such."""

import zlib
from dataclasses import dataclass

from habilis.sandbox.contract import Side
from habilis.tools.tool import tool
from habilis.tools.toolset import Toolset

SOURCE = 'sample data, not real'
_SKIES = ('sunny', 'cloudy', 'rainy', 'windy', 'foggy', 'snowy')
_ROADS = ('free', 'busy', 'slow', 'jammed')


@dataclass(frozen=True, kw_only=True)
class Weather:
    """The weather now."""

    city: str
    sky: str
    celsius: int
    source: str = SOURCE


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """A trip by car now."""

    origin: str
    destination: str
    road: str
    minutes: int
    source: str = SOURCE


def weather(city: str) -> Weather:
    """The weather in a city now (sample data, not real)."""
    number = _number(city)
    sky = _SKIES[number % len(_SKIES)]
    celsius = -5 if sky == 'snowy' else 5 + number // 7 % 25
    return Weather(city=city, sky=sky, celsius=celsius)


def traffic(origin: str, destination: str) -> Traffic:
    """How long a trip by car takes now (sample data, not real)."""
    number = _number(f'{origin} → {destination}')
    road = number % len(_ROADS)
    return Traffic(origin=origin, destination=destination, road=_ROADS[road], minutes=10 + number // 5 % 50 + 15 * road)


def samples_toolset(*, enabled: bool = True, side: Side = 'code') -> Toolset:
    """The toolset `samples`: `weather` and `traffic`.

    Args:
        enabled: whether it is enabled at the start.
        side: who may call its tools, as for `@tool`.
    """
    return Toolset('samples', [tool(side=side)(weather), tool(side=side)(traffic)], enabled=enabled)


def _number(text: str) -> int:
    """A number that depends only on the text."""
    return zlib.crc32(text.strip().lower().encode('utf-8', 'replace'))
