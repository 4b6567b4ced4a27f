"""What every view of the page must fulfil, in both colour schemes."""

from pathlib import Path

from playwright.sync_api import Page

AXE = Path(__file__).parents[3] / 'page' / 'node_modules' / 'axe-core' / 'axe.min.js'
"""`make page` installs it."""


def check(page: Page) -> None:
    """No hostile text was run, all fits in the window, and axe finds nothing serious, in light and in dark."""
    assert page.evaluate('window.hit') is None, 'text of the model, of a tool or of the user was run'
    assert page.locator('a[href^="javascript"]').count() == 0
    assert page.evaluate('document.documentElement.scrollWidth - window.innerWidth') <= 0, 'wider than the window'
    page.evaluate(AXE.read_text())
    for scheme in ('dark', 'light'):
        page.emulate_media(color_scheme=scheme)
        found = page.evaluate('axe.run()')
        serious = [
            (scheme, one['id'], [node['html'] for node in one['nodes']])
            for one in found['violations']
            if one['impact'] in {'serious', 'critical'}
        ]
        assert not serious, serious
