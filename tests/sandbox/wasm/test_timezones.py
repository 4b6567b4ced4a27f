"""Time zones are there without a package."""

from habilis.sandbox import Sandbox

CODE = """
from datetime import datetime
from zoneinfo import ZoneInfo, available_timezones
noon = datetime(2026, 7, 1, 12, tzinfo=ZoneInfo('Europe/Berlin'))
[noon.astimezone(ZoneInfo('America/New_York')).isoformat(), 'Asia/Tokyo' in available_timezones()]
"""


async def test_a_time_zone_is_known_by_its_name() -> None:
    async with await Sandbox.create() as sandbox:
        cell = await sandbox.run(CODE)
        assert cell.value == ['2026-07-01T06:00:00-04:00', True], cell.error
        cell = await sandbox.run("ZoneInfo('Europe/Nowhere')")
        assert cell.error is not None
        assert cell.error.type == 'ZoneInfoNotFoundError'
