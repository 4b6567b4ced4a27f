"""`RedisStore` does what the contract says, and stands what a server does to it."""

from pathlib import Path

import pytest
import redis.asyncio

from habilis.journal.conformance import StoreConformance
from habilis.journal.contract import Store
from habilis.journal.redis import RedisStore


class TestRedis(StoreConformance):
    @pytest.fixture(autouse=True)
    def _server(self, redis_url: str) -> None:
        self.url = redis_url

    async def connect(self, place: Path) -> Store:
        return RedisStore(self.url, prefix=f'{place}:')

    async def clean(self, place: Path) -> None:
        async with redis.asyncio.Redis.from_url(self.url) as client:
            found = [key async for key in client.scan_iter(match=f'{place}:*')]
            if found:
                await client.delete(*found)
