"""The time zones in memory: `zoneinfo` finds them as if the package `tzdata` were installed."""

import importlib.util
import io
import os
import zoneinfo
from collections.abc import Callable
from typing import Any, cast


def collect() -> dict[str, bytes]:
    """The files of `tzdata` by the name of their zone. Zones with several names are stored once."""
    spec = importlib.util.find_spec('tzdata')
    if spec is None or not spec.submodule_search_locations:
        return {}
    folder = os.path.join(next(iter(spec.submodule_search_locations)), 'zoneinfo')
    with open(os.path.join(os.path.dirname(folder), 'zones'), encoding='utf-8') as file:
        names = file.read().split()
    stored: dict[bytes, bytes] = {}
    zones: dict[str, bytes] = {}
    for name in names:
        with open(os.path.join(folder, *name.split('/')), 'rb') as file:
            data = file.read()
        zones[name] = stored.setdefault(data, data)
    return zones


def install() -> None:
    """Collect the zones and let `zoneinfo` read them. A package `tzdata` of the user comes first."""
    zones = collect()
    common, paths = cast('Any', zoneinfo)._common, cast('Any', zoneinfo)._tzpath
    load: Callable[[str], Any] = common.load_tzdata
    available: Callable[[], set[str]] = paths.available_timezones

    def load_tzdata(key: str) -> Any:
        try:
            return load(key)
        except zoneinfo.ZoneInfoNotFoundError:
            if key not in zones:
                raise
            return io.BytesIO(zones[key])

    def available_timezones() -> set[str]:
        """All keys of `ZoneInfo`."""
        return available() | zones.keys()

    common.load_tzdata = load_tzdata
    paths.available_timezones = available_timezones
    zoneinfo.available_timezones = available_timezones
