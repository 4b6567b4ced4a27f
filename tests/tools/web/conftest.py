"""The loopback web, and what reads it."""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from habilis.core.settings import load_settings
from habilis.tools.web.downloads import DownloadLimits
from habilis.tools.web.web import Web
from tests.tools.web import sites
from tests.tools.web.loopback import LoopbackWeb


@pytest.fixture
def site() -> Generator[LoopbackWeb]:
    """All generated sites and traps."""
    with LoopbackWeb({**sites.generated(), **sites.traps()}) as web:
        yield web


@pytest.fixture
async def web(site: LoopbackWeb, tmp_path: Path) -> AsyncGenerator[Web]:
    """Reads the loopback web, without waiting between requests."""
    async with Web(load_settings(**site.settings), limits=DownloadLimits(pace=0), cache=tmp_path / 'cache') as opened:
        yield opened
