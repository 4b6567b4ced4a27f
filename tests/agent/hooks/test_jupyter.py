"""A run is shown below the cell of a notebook: with `await`, without it, and with everything escaped."""

import base64
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, TypedDict, cast

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from habilis.agent.events import CellFinished, TextEvent
from habilis.agent.hooks import JupyterView
from habilis.agent.hooks.html import MAX_TEXT
from habilis.agent.hooks.jupyter import MAX_UPDATED
from habilis.agent.hooks.terminal import SCRIPTED
from habilis.core.errors import ModelError
from habilis.models.contract import Delta
from habilis.models.scripted import ScriptedModel
from habilis.sandbox.contract import Cell, Display
from tests.agent.hooks.samples import sample
from tests.agent.hooks.watching import ANSWER, code, watch

PIXEL = base64.b64decode(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
)
EVIL = '<script>alert(1)</script><img src=x onerror=alert(1)>"\'&lt;\x1b[2J\u202e'


class Shown(TypedDict):
    """What the kernel would send to the page."""

    data: dict[str, str]
    transient: dict[str, str]
    update: bool


class Notebook:
    """IPython, as a kernel runs it."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = cast('Any', shell)  # it has few types
        self._published = CapturingDisplayPublisher(shell=shell)
        shell.display_pub = self._published

    @property
    def shown(self) -> list[Shown]:
        """Everything that was displayed, in order."""
        return cast('list[Shown]', self._published.outputs)

    @property
    def page(self) -> str:
        """The display as it looks at last."""
        return self.shown[-1]['data']['text/html']

    async def run(self, cell: str) -> Any:
        """Run a cell as a notebook does, on the running event loop; the value of its last line."""
        result = await self._shell.run_cell_async(cell, transformed_cell=self._shell.transform_cell(cell))
        result.raise_error()
        return result.result


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    """A fresh one. IPython takes the place of `__main__`, which is put back."""
    monkeypatch.setenv('IPYTHONDIR', str(tmp_path))
    monkeypatch.setitem(sys.modules, '__main__', sys.modules['__main__'])
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config)
    try:
        yield Notebook(shell)
    finally:
        InteractiveShell.clear_instance()


SETUP = f"""
from habilis.agent import Agent
from habilis.agent.hooks import JupyterView
from habilis.models.scripted import ScriptedModel
agent = Agent(ScriptedModel([{ANSWER!r}, {ANSWER!r}]), hooks=[JupyterView()])
"""


# Inside a notebook ----------------------------------------------------------------------------------------------------


async def test_a_cell_can_await_a_run_at_its_top_level(notebook: Notebook) -> None:
    assert await notebook.run(f'{SETUP}\n(await agent.run("What is 6 times 7?")).output') == 42
    assert '42' in notebook.page


async def test_a_cell_can_run_without_await_although_an_event_loop_is_running(notebook: Notebook) -> None:
    assert await notebook.run(f'{SETUP}\nagent.run_sync("What is 6 times 7?").output') == 42
    assert '42' in notebook.page


async def test_one_agent_can_do_both_in_one_notebook(notebook: Notebook) -> None:
    await notebook.run(SETUP)
    assert await notebook.run('(await agent.run("x")).output') == 42
    assert await notebook.run('agent.run_sync("x").output') == 42
    assert len({shown['transient']['display_id'] for shown in notebook.shown}) == 2


async def test_a_question_is_shown_as_a_question(notebook: Notebook) -> None:
    asking = code("ask_user('Which colour?')")
    made = f'Agent(ScriptedModel([{asking!r}]), hooks=[JupyterView()], tools=[people_toolset()])'
    await notebook.run(f'{SETUP}\nfrom habilis.tools import people_toolset\nawait {made}.run("Paint it")')
    assert 'Which colour?' in notebook.page
    assert 'NeedsAnswer' not in notebook.page


async def test_a_run_is_one_display_that_is_updated(notebook: Notebook) -> None:
    await notebook.run(f'{SETUP}\nawait agent.run("x")')
    first, *others = notebook.shown
    assert not first['update']
    assert all(shown['update'] for shown in others)
    assert len({shown['transient']['display_id'] for shown in notebook.shown}) == 1
    assert 'result = 6 * 7' not in words(first['data']['text/html'])
    assert 'result = 6 * 7' in words(notebook.page)


async def test_a_callback_of_the_notebook_sees_every_event(notebook: Notebook) -> None:
    seen = await notebook.run(
        f'{SETUP}\nkinds = []\nagent.run_sync("x", hooks=[lambda event: kinds.append(event.kind)])\nkinds'
    )
    assert (seen[0], seen[-1]) == ('run_started', 'run_finished')


# What is shown --------------------------------------------------------------------------------------------------------


def double(number: int) -> int:
    """Twice as much."""
    return 2 * number


async def test_the_page_shows_the_whole_run(notebook: Notebook) -> None:
    replies = [f'I try.\n{code("print(double(21))")}', code('1 / 0'), ANSWER]
    await watch(replies, JupyterView(), tools=[double], name='bob')
    text = words(notebook.page)
    for part in ('bob · scripted:script', SCRIPTED, 'I try.', 'print(double(21))', 'double(number=21) → 42'):
        assert part in text
    assert 'ZeroDivisionError: division by zero' in text
    assert re.search(r'answer · 3 steps · \d+\.\d s · [\d,]+ tokens · \$0\.00$', text)


async def test_each_part_can_be_switched_off(notebook: Notebook) -> None:
    replies = [f'I try.\n{code("print(double(21) + 1)")}', ANSWER]
    await watch(replies, JupyterView(thinking=False, code=False, outputs=False), tools=[double])
    for part in ('I try.', 'double', '43'):
        assert part not in words(notebook.page)
    assert '42' in words(notebook.page)


async def test_an_answer_in_words_is_shown_once(notebook: Notebook) -> None:
    await watch(['It is forty-two.'], JupyterView())
    assert words(notebook.page).count('forty-two') == 1


async def test_an_image_that_code_shows_is_an_image_on_the_page(notebook: Notebook) -> None:
    source = f'class Picture:\n    def _repr_png_(self):\n        return {PIXEL!r}\nPicture()'
    await watch([code(source), ANSWER], JupyterView())
    assert f'<img src="data:image/png;base64,{base64.b64encode(PIXEL).decode()}"' in notebook.page


async def test_a_run_that_fails_says_why(notebook: Notebook) -> None:
    with pytest.raises(ModelError):
        await watch([ModelError('no <model>')], JupyterView())
    assert 'failed: ModelError: no <model>' in words(notebook.page)


def test_text_that_grows_is_not_drawn_at_every_token_but_in_the_end_it_is_all_there(notebook: Notebook) -> None:
    view = JupyterView()
    start = datetime(2026, 1, 1, tzinfo=UTC)
    view(replace(sample('model_requested'), at=start))
    for number in range(1000):
        at = start + timedelta(milliseconds=number)
        view(TextEvent(delta=Delta(text='word '), at=at))
    view(replace(sample('model_replied'), at=start + timedelta(seconds=1)))
    assert len(notebook.shown) < 20
    assert notebook.page.count('word') == 1000


def test_much_output_is_shown_in_part(notebook: Notebook) -> None:
    view = JupyterView()
    for _ in range(10):
        view(sample('output', 'z' * MAX_TEXT))
    view(CellFinished(cell=Cell()))
    assert notebook.page.count('z') == MAX_TEXT
    for _ in range(2000):
        view(sample('notice', 'n'))
    assert notebook.page.count('<div') < 500


def test_while_it_runs_the_page_says_what_it_waits_for(notebook: Notebook) -> None:
    view = JupyterView()
    for kind, status in (
        ('run_resumed', ''),
        ('model_requested', '⏳ waiting for'),
        ('model_progress', '⏳ reading 3 of 9'),
        ('code', '⏳ running the code'),
        ('tool_called', '⏳ waiting for send'),
        ('tool_returned', '⏳ running the code'),
    ):
        view(sample(kind, 'send'))
        assert status in words(notebook.page)
    view(sample('run_finished'))
    assert '⏳' not in notebook.page


def test_a_large_display_is_not_sent_again_with_every_update(notebook: Notebook) -> None:
    view = JupyterView()
    view(CellFinished(cell=Cell(displays=(Display(mime='image/png', data=b'x' * MAX_UPDATED),))))
    view(sample('notice', 'after it'))
    first, second = notebook.shown
    assert first['transient'] != second['transient']
    assert not second['update']
    assert 'img' in first['data']['text/html']
    assert 'img' not in second['data']['text/html']


# Hostile text ---------------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ''

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.text += '' if tag == 'span' else '\n'

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(page: str) -> Tags:
    """Read a page as a browser does."""
    tags = Tags()
    tags.feed(page)
    tags.close()
    return tags


def words(page: str) -> str:
    """What a page says."""
    return parsed(page).text.strip()


async def test_nothing_that_a_model_or_its_code_wrote_becomes_an_element(notebook: Notebook) -> None:
    def echo(text: str) -> str:
        """Say it again."""
        return text

    source = f'evil = {EVIL!r}\nprint(echo(evil))\nraise ValueError(evil)'
    answer = f'evil = {EVIL!r}\nfinal_answer(evil)'
    model = ScriptedModel([f'I say {EVIL}\n{code(source)}', code(answer)], name=f'scripted:{EVIL}')
    await watch(model, JupyterView(), tools=[echo], name=EVIL, task=EVIL)
    tags = parsed(notebook.page)
    assert {tag for tag, _ in tags.found} == {'div', 'p', 'span'}
    assert all(set(attrs) <= {'class', 'style'} for _, attrs in tags.found)
    assert '<script>alert(1)</script>' in tags.text
    assert '\x1b' not in notebook.page


def shown_display(notebook: Notebook, mime: str, data: str | bytes) -> Tags:
    """How something that code displays is shown."""
    JupyterView()(CellFinished(cell=Cell(displays=(Display(mime=mime, data=data),))))
    return parsed(notebook.page)


def test_a_page_made_in_the_sandbox_runs_no_script_and_loads_nothing(notebook: Notebook) -> None:
    tags = shown_display(notebook, 'text/html', EVIL)
    assert [tag for tag, _ in tags.found] == ['div', 'iframe']
    frame = tags.found[1][1]
    assert frame['sandbox'] == ''
    assert "default-src 'none'" in (frame['srcdoc'] or '')
    assert '<script>' in (frame['srcdoc'] or '')


def test_a_drawing_is_an_image_so_that_its_scripts_do_not_run(notebook: Notebook) -> None:
    tags = shown_display(notebook, 'image/svg+xml', '<svg onload="alert(1)"/>')
    assert [tag for tag, _ in tags.found] == ['div', 'img']
    assert (tags.found[1][1]['src'] or '').startswith('data:image/svg+xml;base64,')


@pytest.mark.parametrize('mime', ['image/png" onerror="alert(1)', 'text/latex', 'application/javascript', ''])
def test_everything_else_is_text(notebook: Notebook, mime: str) -> None:
    for data in (EVIL, EVIL.encode()):
        assert {tag for tag, _ in shown_display(notebook, mime, data).found} == {'div'}


def test_without_ipython_it_is_said_what_to_install() -> None:
    program = (
        'import sys\n'
        "sys.modules['IPython'] = sys.modules['IPython.display'] = None\n"
        'from habilis.agent.hooks import JupyterView\n'
        'try:\n    JupyterView()\n'
        'except ImportError as error:\n    print(error)\n'
    )
    child = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, timeout=600, check=True)
    assert 'pip install ipython' in child.stdout
