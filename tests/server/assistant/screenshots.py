"""Draws the pictures of the page for the documentation: `python -m tests.server.assistant.screenshots FOLDER`."""

import asyncio
import sys
import tempfile
import threading
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from habilis.forge.contract import Candidate
from habilis.forge.library.library import Library
from habilis.server.serve import listen
from habilis.server.settings import HttpSettings
from tests.requirements import require
from tests.server.assistant.conftest import service

REPLIES = [
    (
        'I simulate the throws.\n```python\nimport random\nfrom collections import Counter\n\nrandom.seed(1)\n'
        'sums = Counter(random.randint(1, 6) + random.randint(1, 6) for _ in range(10_000))\n'
        'for total in sorted(sums):\n    print(f"{total:>2} {sums[total]:>5} {\'#\' * (sums[total] // 50)}")\n```'
    ),
    'Seven comes most often: **about one throw in six**.',
    '```python\nmean = sum(total * count for total, count in sums.items()) / sums.total()\nprint(mean)\n```',
    'The mean is close to **7**.',
]
CODE = 'def mean(values: list[float]) -> float:\n    """The mean of numbers."""\n    return sum(values) / len(values)\n'
TESTS = 'from tool import mean\n\ndef test_mean():\n    assert mean([1, 3]) == 2\n'


def draw(address: str, folder: Path) -> None:
    """Take the walk of a person, with a picture of each view."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=require('chromium'), args=['--no-sandbox'])
        page = browser.new_page(viewport={'width': 1100, 'height': 700})
        page.goto(f'{address}/#/memory')
        page.get_by_label('Fact').fill('I like short answers about throws of dice.')
        page.get_by_label('Kind').select_option('preference')
        page.get_by_role('button', name='Remember').click()
        page.goto(f'{address}/#')
        for message, answer in (
            ('Simulate 10,000 throws of two dice', 'one throw in six'),
            ('And the mean?', 'close to'),
        ):
            page.get_by_label('Message').fill(message)
            page.get_by_label('Message').press('Enter')
            expect(page.get_by_text(answer)).to_be_visible()
        run = page.get_by_role('link', name='run-').first.get_attribute('href')
        views = {'chat': '#', 'runs': '#/runs', 'run': run, 'memory': '#/memory', 'tool': '#/tools/mean'}
        for name, place in views.items():
            page.goto(f'{address}/{place}')
            page.wait_for_timeout(1000)
            if name == 'run':
                page.get_by_role('button', name='1.').click()
            page.screenshot(path=folder / f'{name}.png')
        page.set_viewport_size({'width': 390, 'height': 700})
        page.goto(f'{address}/{run}')
        page.wait_for_timeout(1000)
        page.screenshot(path=folder / 'phone.png')
        browser.close()


def main() -> None:
    """Serve a script, and draw."""
    settings, folder = HttpSettings(port=0), Path(sys.argv[-1])
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as data:
        Library(Path(data) / 'library').add(Candidate(name='mean', code=CODE, tests=TESTS), tests=1, origin='user')
        server, listening = service(Path(data), REPLIES, settings), listen(settings)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])), daemon=True)
        thread.start()
        draw(f'http://127.0.0.1:{listening.getsockname()[1]}', folder)
        server.should_exit = True
        thread.join(20)


if __name__ == '__main__':
    main()
