"""A person who has read nothing takes the whole walk, on a desktop and on a phone."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator

from habilis.forge.library.library import Library
from tests.server.assistant.axe import check
from tests.server.assistant.conftest import Serve
from tests.server.assistant.walk import options, reply, walk


def look(_name: str, part: Locator) -> None:
    check(part.page)


@pytest.mark.parametrize('width', [1280, 390], ids=['desktop', 'phone'])
def test_a_person_takes_the_whole_walk(serve: Serve, browser: Browser, tmp_path: Path, width: int) -> None:
    with serve(reply, **options(tmp_path)) as address:
        page = browser.new_page(viewport={'width': width, 'height': 800})
        walk(page, address, look)
        page.close()
    assert (tmp_path / 'shared' / 'summary.md').read_text().startswith('# Sales\n\n- North: 180\n')
    assert 'percentages' in Library(tmp_path / 'library')
