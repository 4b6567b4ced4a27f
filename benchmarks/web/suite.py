"""All measurements of `python -m benchmarks web`."""

import tempfile
import time
from pathlib import Path

from benchmarks.installation import why_missing
from benchmarks.measurement import load_average, summarize
from benchmarks.report import Progress, Report, Row, Target, make_report, time_row
from benchmarks.web.pages import page, served
from habilis.core.settings import load_settings

PAGES = 50
FETCH_TARGET = 6.0


async def measure(*, quick: bool, progress: Progress) -> Report:
    """Run all measurements. Takes half a minute."""
    load = load_average()
    if missing := why_missing('trafilatura'):
        return make_report([Row(key='fetch', label=_LABEL, unit='s', note=missing)], load=load, quick=quick)
    progress('pages')
    times = [await _fetch() for _ in range(2 if quick else 5)]
    rows = [
        time_row('fetch', _LABEL, summarize([seconds for seconds, _ in times]), FETCH_TARGET, unit='s'),
        Row(
            key='same',
            label='pages with the text that trafilatura itself finds',
            unit=f' of {PAGES}',
            value=min(same for _, same in times),
            target=Target(bound=PAGES, sense='at least'),
        ),
    ]
    return make_report(rows, load=load, quick=quick)


_LABEL = f'{PAGES} pages fetched and extracted, processes started'


async def _fetch() -> tuple[float, int]:
    """Seconds for all pages, with processes and a cache that are new; and pages with the expected text."""
    import trafilatura

    from habilis.tools.web import Web, WebPage
    from habilis.tools.web.downloads import DownloadLimits

    with served() as url, tempfile.TemporaryDirectory() as folder:
        settings = load_settings(Path(folder), web_hosts='127.0.0.1')
        started = time.perf_counter()
        async with Web(settings, limits=DownloadLimits(pace=0), cache=Path(folder)) as web:
            found = await web.fetch([f'{url}/{number}.html' for number in range(PAGES)])
        seconds = time.perf_counter() - started
    expected = [
        trafilatura.extract(page(number), output_format='markdown', include_comments=False) for number in range(PAGES)
    ]
    same = [isinstance(one, WebPage) and one.text == text for one, text in zip(found, expected, strict=True)]
    return seconds, sum(same)
