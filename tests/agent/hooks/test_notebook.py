"""A real notebook, executed by a real kernel: agents, runs and results are shown without being asked."""

import base64
from pathlib import Path
from typing import Any, cast

import nbformat
import pytest
from nbclient import NotebookClient

from tests.agent.hooks.test_jupyter import PIXEL, parsed, words
from tests.agent.scripts import block

IMAGE = base64.b64encode(PIXEL).decode()
PLOT = f'class Plot:\n    def _repr_png_(self):\n        return {PIXEL!r}\nPlot()'
TABLE = '<table><tr><td>7</td></tr></table><script>1</script>'
FRAME = f'class Frame:\n    def _repr_html_(self):\n        return {TABLE!r}\nFrame()'
ANSWER = 'It is **bold**:\n\n| city | people |\n|---|---|\n| Rome | 3 |\n\n<script>alert(1)</script>'
REPLIES = [
    f'I draw *first*.\n{block(PLOT)}',
    block(FRAME),
    block(f'final_answer({ANSWER!r})'),
]
SETUP = f"""
from habilis import Agent, ScriptedModel

def price(product: str) -> float:
    '''Price of a product.'''
    return 1.0

def agent(replies={REPLIES!r}, **options):
    return Agent(ScriptedModel(replies), tools=[price], journal='off', **options)
"""


def run_notebook(folder: Path, *cells: str) -> list[list[dict[str, Any]]]:
    """Write a notebook, execute it, save it; the outputs of its cells, without the first."""
    files = cast('Any', nbformat)  # it has few types
    sources = [files.v4.new_code_cell(source) for source in (SETUP, *cells)]
    path = folder / 'test.ipynb'
    files.write(files.v4.new_notebook(cells=sources), path)
    notebook = files.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, kernel_name='python3').execute()
    files.write(notebook, path)  # as it must be to be opened again
    return [cell['outputs'] for cell in notebook['cells'][1:]]


def pages(outputs: list[dict[str, Any]]) -> list[str]:
    """The HTML that a cell shows."""
    return [output['data']['text/html'] for output in outputs if 'text/html' in output.get('data', {})]


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read from, or left in, the home folder."""
    for name in ('IPYTHONDIR', 'JUPYTER_CONFIG_DIR', 'JUPYTER_DATA_DIR', 'JUPYTER_RUNTIME_DIR'):
        monkeypatch.setenv(name, str(tmp_path / name))


def test_a_notebook_shows_agents_runs_and_results(tmp_path: Path) -> None:
    awaited, waited, again, shown_agent = run_notebook(
        tmp_path,
        'result = await agent().run("Draw")\nresult',
        'other = agent().run_sync("Draw")',
        'result',
        'agent(output_type=int, name="<b>")',
    )

    assert len(pages(awaited)) == 1  # the run, and its result as one line
    assert awaited[-1]['data'].keys() == {'text/plain'}
    assert awaited[-1]['data']['text/plain'].startswith("Result(output='It is **bold**")
    for outputs in (awaited, waited, again):
        page = pages(outputs)[0]
        tags = parsed(page)
        assert f'<img src="data:image/png;base64,{IMAGE}"' in page
        assert {'strong', 'table', 'td', 'iframe'} <= {tag for tag, _ in tags.found}
        assert not {'script', 'object', 'embed', 'link', 'form'} & {tag for tag, _ in tags.found}
        assert [attrs['sandbox'] for tag, attrs in tags.found if tag == 'iframe'] == ['']
        assert '<script>alert(1)</script>' in words(page)
        assert 'class Plot:' in words(page)
        assert 'color:' in page  # highlighted
        assert 'answer · 3 steps' in words(page)
    assert len(waited) == 1
    assert '<em>first</em>' in pages(awaited)[0]

    page = pages(shown_agent)[0]
    assert all(word in words(page) for word in ('<b>', 'scripted:script', 'int', 'price()', 'Price of a product.'))
    assert shown_agent[0]['data']['text/plain'].startswith("Agent('scripted:script', name='<b>', output_type=int")


def test_the_view_can_be_replaced_and_switched_off_and_does_not_flood_a_loop(tmp_path: Path) -> None:
    own, streamed, off, many = run_notebook(
        tmp_path,
        'kinds = []\nawait agent(hooks=[lambda event: kinds.append(event.kind)]).run("Draw")\nkinds[-1]',
        'async for event in agent().stream("Draw"):\n    pass\nevent.result.ended',
        'import os\nos.environ["HABILIS_NOTEBOOK_VIEW"] = "false"\nagent().run_sync("Draw").ended',
        'del os.environ["HABILIS_NOTEBOOK_VIEW"]\nfor _ in range(12):\n    await agent(["Done.", "Done."]).run("Say")',
    )
    assert [output['data'] for output in own] == [{'text/plain': "'run_finished'"}]
    assert [output['data'] for output in (*streamed, *off)] == [{'text/plain': "'answer'"}] * 2
    assert len(pages(many)) == 10
