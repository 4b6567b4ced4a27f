"""Draws the pictures of the page for the documentation: `python -m tests.server.assistant.screenshots FOLDER`."""

import asyncio
import sys
import tempfile
import threading
from pathlib import Path

from playwright.sync_api import Locator, Page, sync_playwright

from habilis.server.serve import listen
from habilis.server.settings import HttpSettings
from tests.requirements import require
from tests.server.assistant.conftest import service
from tests.server.assistant.walk import options, reply, walk

ON_A_PHONE = ('start', 'plot', 'approval', 'run')
IN_THE_DARK = ('plot', 'tool')


def draw(page: Page, folder: Path, name: str, part: Locator) -> None:
    """Draw a view with this part of it on a desktop and, for some, in the dark and on a phone."""
    part.scroll_into_view_if_needed()
    page.wait_for_timeout(500)  # for what is loaded on demand
    page.screenshot(path=folder / f'{name}.png')
    if name in IN_THE_DARK:
        page.emulate_media(color_scheme='dark')
        page.screenshot(path=folder / f'{name}-dark.png')
        page.emulate_media(color_scheme='light')
    if name in ON_A_PHONE:
        desktop = page.viewport_size
        assert desktop is not None
        page.set_viewport_size({'width': 390, 'height': 700})
        part.scroll_into_view_if_needed()
        page.screenshot(path=folder / f'{name}-phone.png')
        page.set_viewport_size(desktop)


def main() -> None:
    """Serve a script, and draw its walk."""
    settings, folder = HttpSettings(port=0), Path(sys.argv[-1])
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as data, sync_playwright() as playwright:
        server, listening = service(Path(data), reply, settings, **options(Path(data))), listen(settings)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])), daemon=True)
        thread.start()
        browser = playwright.chromium.launch(executable_path=require('chromium'), args=['--no-sandbox'])
        page = browser.new_page(viewport={'width': 1100, 'height': 700})
        address = f'http://127.0.0.1:{listening.getsockname()[1]}'
        walk(page, address, lambda name, part: draw(page, folder, name, part))
        browser.close()
        server.should_exit = True
        thread.join(20)


if __name__ == '__main__':
    main()
