"""The page in a real Chromium: records from the journal to the browser, and a long run that is drawn."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.installation import why_missing
from benchmarks.server.sample_run import store_run
from benchmarks.server.serving import served
from habilis.journal import Record, RunInfo, Store

if TYPE_CHECKING:
    from playwright.async_api import Browser

LISTEN = """
window.late = [];
new EventSource('/api/runs/run-live/events').addEventListener('record', (event) => {
  window.late.push((performance.timeOrigin + performance.now()) / 1000 - JSON.parse(event.data).at);
});
"""


@dataclass(frozen=True, kw_only=True)
class BrowserTimes:
    """Seconds."""

    late: list[float]
    """From the write of a record to the browser, for each."""

    drawn: list[float]
    """From the address to the last step of a long run on the screen."""

    processor: list[float]
    """Processor time of it: of the page's thread, and of the server."""


def why_no_browser() -> str | None:
    """Why there is no Chromium; None if there is."""
    found = shutil.which('chromium')
    return why_missing('playwright') or (None if found else 'not installed: apt-get install chromium')


async def browser_times(*, records: int, long: int, rounds: int) -> BrowserTimes:
    """Watch so many new records, and open a run of `long` records so often."""
    with tempfile.TemporaryDirectory() as folder:
        async with served(Path(folder)) as (store, port), _chromium() as browser:
            address = f'http://127.0.0.1:{port}'
            late = await _late(browser, store, address, records)
            await store_run(store, 'run-long', long)
            drawn = [await _drawn(browser, address, (long - 2) // 2) for _ in range(rounds)]
    return BrowserTimes(late=late, drawn=[wall for wall, _ in drawn], processor=[used for _, used in drawn])


@asynccontextmanager
async def _chromium() -> 'AsyncGenerator[Browser]':
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=shutil.which('chromium'), args=['--no-sandbox'])
        yield browser
        await browser.close()


async def _late(browser: 'Browser', store: Store, address: str, count: int) -> list[float]:
    await store.create(RunInfo(run='run-live', user='local', status='running'))
    lease = await store.claim('run-live', owner='bench', seconds=600)
    page = await browser.new_page()
    await page.goto(f'{address}/api/health')
    await page.evaluate(LISTEN)
    for seq in range(1, count + 1):
        record = Record(seq=seq, path='', kind='noted', value={'number': seq}, at=time.time())
        await store.append('run-live', [record], epoch=lease.epoch)
        await asyncio.sleep(0.02)
    await page.wait_for_function(f'window.late.length === {count}')
    late: list[float] = await page.evaluate('window.late')
    await page.close()
    return late[count // 10 :]  # the connection is opened meanwhile


async def _drawn(browser: 'Browser', address: str, last: int) -> tuple[float, float]:
    page = await browser.new_page()
    tools: Any = await page.context.new_cdp_session(page)  # whose answers have no types
    await tools.send('Performance.enable', {'timeDomain': 'threadTicks'})
    started, used = time.perf_counter(), time.process_time()
    await page.goto(f'{address}/#long')
    await page.get_by_label(f'Code of step {last}', exact=True).wait_for()
    seconds, used = time.perf_counter() - started, time.process_time() - used
    found = await tools.send('Performance.getMetrics')
    used += next(one['value'] for one in found['metrics'] if one['name'] == 'TaskDuration')
    await page.close()
    return seconds, used
