"""Rich results: what a value offers is shown, and a value that fails to show itself harms nothing."""

import pytest

from habilis import Sandbox
from habilis.sandbox.contract import Cell

RICH = """
class Rich:
    def __repr__(self): return 'as text'
    def _repr_html_(self): return '<b>html</b>'
    def _repr_markdown_(self): return '# md'
    def _repr_svg_(self): return '<svg/>'
    def _repr_png_(self): return bytes(range(256))
    def _repr_jpeg_(self): return b'\\xff\\xd8'
    def _repr_latex_(self): return '$x$'
"""


def shown(cell: Cell) -> list[tuple[str, str | bytes]]:
    assert cell.error is None, cell.error.traceback
    return [(display.mime, display.data) for display in cell.displays]


async def test_a_value_is_shown_in_every_form_it_offers(sandbox: Sandbox) -> None:
    cell = await sandbox.run(f'{RICH}\nRich()')
    assert shown(cell) == [
        ('text/html', '<b>html</b>'),
        ('text/markdown', '# md'),
        ('image/svg+xml', '<svg/>'),
        ('image/png', bytes(range(256))),
        ('image/jpeg', b'\xff\xd8'),
        ('text/latex', '$x$'),
    ]
    assert (cell.value, cell.text) == (None, 'as text')


async def test_display_shows_more_than_one_thing_in_order(sandbox: Sandbox) -> None:
    cell = await sandbox.run(
        "class H:\n    def __init__(self, n): self.n = n\n    def _repr_html_(self): return f'<i>{self.n}</i>'\n"
        "display(H(1), 'text')\nfor n in range(2, 4): display(H(n))\nH(4)"
    )
    assert shown(cell) == [
        ('text/html', '<i>1</i>'),
        ('text/plain', "'text'"),
        ('text/html', '<i>2</i>'),
        ('text/html', '<i>3</i>'),
        ('text/html', '<i>4</i>'),
    ]
    assert shown(await sandbox.run('1')) == []


async def test_what_was_shown_before_an_error_is_kept(sandbox: Sandbox) -> None:
    cell = await sandbox.run('display(1)\n1/0')
    assert [display.data for display in cell.displays] == ['1']
    assert cell.error is not None


@pytest.mark.parametrize('body', ['1/0', 'return None', 'return 3', 'raise SystemExit', 'return self'])
async def test_a_form_that_fails_is_left_out(sandbox: Sandbox, body: str) -> None:
    cell = await sandbox.run(f"class B:\n    def _repr_html_(self): {body}\n    def __repr__(self): return 'B'\nB()")
    assert shown(cell) == []
    assert cell.text == 'B'


async def test_a_class_is_not_taken_for_its_instances(sandbox: Sandbox) -> None:
    assert shown(await sandbox.run(f'{RICH}\nRich')) == []
