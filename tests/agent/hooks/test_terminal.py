"""The terminal shows a run as it goes on, and is never commanded by what it shows."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Literal, TypedDict, Unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from habilis.agent.contract import RunLimits
from habilis.agent.events import (
    AgentEvent,
    AnswerEvent,
    ApprovalAsked,
    CodeEvent,
    OutputEvent,
    RunStarted,
    ToolCalled,
    ToolReturned,
)
from habilis.agent.hooks import TerminalView
from habilis.agent.hooks.terminal import MAX_OUTPUT, SCRIPTED
from habilis.core.errors import ModelError
from habilis.models.contract import FunctionCall, Reply, Traits, Usage
from habilis.models.scripted import ScriptedModel
from habilis.sandbox.contract import ToolCall
from habilis.tools import ApprovalRequest, GateCall, people_toolset, tool
from tests.agent.hooks.samples import SAMPLES, sample
from tests.agent.hooks.watching import ANSWER, Seen, code, watch
from tests.cases import each_case

CONTROLS = re.compile('\x1b\\[[0-9;]*m')


class Parts(TypedDict, total=False):
    """What can be switched."""

    thinking: bool
    code: bool
    outputs: bool
    tools: bool
    markdown: bool
    quiet: bool


class Screen:
    """A view, and what it has written."""

    def __init__(
        self,
        *,
        terminal: bool = False,
        width: int = 100,
        encoding: Literal['utf-8', 'ascii'] = 'utf-8',
        **parts: Unpack[Parts],
    ) -> None:
        self._bytes = io.BytesIO()
        file = io.TextIOWrapper(self._bytes, encoding=encoding, write_through=True)
        console = Console(
            file=file, force_terminal=terminal, width=width, color_system='truecolor' if terminal else 'auto'
        )
        self._file = file
        self.view = TerminalView(console, **parts)

    @property
    def text(self) -> str:
        """All of it."""
        return self._bytes.getvalue().decode(self._file.encoding)

    @property
    def plain(self) -> str:
        """Without colours."""
        return CONTROLS.sub('', self.text)


def double(number: int) -> int:
    """Twice as much."""
    return 2 * number


STORY = [
    Reply(text='I double it.\n\n' + code("print('before')\nhalf = double(4)\nhalf"), thinking='Hmm, easy.'),
    code('1 / 0'),
    code('final_answer(half)'),
]


# A run ----------------------------------------------------------------------------------------------------------------


async def test_a_run_is_shown_from_its_model_to_its_cost() -> None:
    screen = Screen()
    await watch(STORY, screen.view, tools=[double], name='bob')
    lines = [re.sub(r'\d+\.\d+ s', '0 s', line) for line in screen.text.splitlines()]
    assert lines[:-1] == [
        'bob · scripted:script',
        SCRIPTED,
        'Hmm, easy.',
        'I double it.',
        "│ print('before')",
        '│ half = double(4)',
        '│ half',
        'before',
        '→ double(number=4)',
        '← double: 8 (0 s)',
        '8',
        'step 1 · 0 s · model 0 s · code 0 s',
        '│ 1 / 0',
        'ZeroDivisionError: division by zero (line 1)',
        'step 2 · 0 s · model 0 s · code 0 s',
        '│ final_answer(half)',
        'step 3 · 0 s · model 0 s · code 0 s',
        '8',
    ]
    assert re.fullmatch(r'done · 3 steps · 0 s · [\d,]+ tokens \([\d,]+ in, \d+ out\) · \$0\.00', lines[-1])


async def test_a_pipe_gets_the_same_as_a_terminal_without_colours_and_controls() -> None:
    piped, terminal = Screen(), Screen(terminal=True)
    await watch(STORY, piped.view, terminal.view, tools=[double])
    assert '\x1b' not in piped.text
    assert '\x1b' in terminal.text
    assert terminal.plain == piped.text


async def test_a_dumb_terminal_gets_no_control_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('TERM', 'dumb')
    file = io.StringIO()
    view = TerminalView(Console(file=file, force_terminal=True, width=40))
    await watch(['**Bold** and ' + 'long ' * 20], view)
    assert '\x1b' not in file.getvalue()
    assert '**Bold** and' in file.getvalue()


async def test_code_is_shown_once_whether_it_comes_as_a_fence_or_as_a_call() -> None:
    call = FunctionCall(id='1', name='python', arguments='{"code": "result = 6 * 7\\nfinal_answer(result)"}')
    called, fenced = Screen(), Screen()
    await watch(ScriptedModel([Reply(text='Now.', calls=(call,))], functions=True), called.view)
    await watch([f'Now.\n{ANSWER}'], fenced.view)
    for screen in (called, fenced):
        assert screen.text.count('result = 6 * 7') == 1
        assert screen.text.count('Now.') == 1
        assert '{"code"' not in screen.text
        assert '```' not in screen.text


async def test_a_terminal_shows_words_before_the_code_that_follows_them() -> None:
    call = FunctionCall(id='1', name='python', arguments='{"code": "result = 6 * 7\\nfinal_answer(result)"}')
    screen = Screen(terminal=True)
    await watch(ScriptedModel([Reply(text='I compute it now.', calls=(call,))], functions=True), screen.view)
    assert re.search(r'I compute it now\. *\n│ result = 6 \* 7', screen.plain)


async def test_a_blank_line_stays_between_paragraphs_that_come_one_after_the_other() -> None:
    screen = Screen(terminal=True)
    await watch(['The first paragraph is here.\n\nThe second one is here.\n\nThe third.'], screen.view)
    assert re.search(r'here\. *\n *\nThe second one is here\. *\n *\nThe third\.', screen.plain)


async def test_an_answer_in_words_is_shown_once() -> None:
    piped, terminal, quiet = Screen(), Screen(terminal=True), Screen(quiet=True)
    await watch(['It is **forty-two**.'], piped.view)
    await watch(['It is forty-two.'], terminal.view)
    await watch(['It is forty-two.'], quiet.view)
    for screen in (piped, terminal, quiet):
        assert screen.plain.count('forty-two') == 1


async def test_an_answer_in_markdown_is_rendered_on_a_terminal_unless_that_is_switched_off() -> None:
    answer = code("text = '# Title\\n\\nIt is **bold**.'\nfinal_answer(text)")
    rendered, raw, piped = Screen(terminal=True), Screen(terminal=True, markdown=False), Screen()
    await watch([answer], rendered.view, raw.view, piped.view)
    assert 'It is bold.' in rendered.plain
    assert '\x1b[1mbold' in rendered.text
    for screen in (raw, piped):
        assert '# Title\n\nIt is **bold**.\n' in screen.plain


async def test_quiet_shows_the_answer_alone() -> None:
    screen = Screen(quiet=True)
    await watch(STORY, screen.view, tools=[double])
    assert screen.text.splitlines() == [SCRIPTED, '8']


@pytest.mark.parametrize(
    ('part', 'hidden'),
    [
        ('thinking', ['I double it.', 'Hmm, easy.']),
        ('code', ["print('before')"]),
        ('outputs', ['\nbefore', 'ZeroDivisionError']),
        ('tools', ['→ double', '← double']),
    ],
)
async def test_each_part_can_be_switched_off(
    part: Literal['thinking', 'code', 'outputs', 'tools'], hidden: list[str]
) -> None:
    parts: Parts = {}
    parts[part] = False
    less, everything = Screen(**parts), Screen()
    await watch(STORY, less.view, everything.view, tools=[double])
    for text in hidden:
        assert text in everything.text
        assert text not in less.text
    assert 'done · 3 steps' in less.text


async def test_a_limit_is_named_at_the_end() -> None:
    screen = Screen()
    await watch([code('print(1)')], screen.view, limits=RunLimits(steps=1))
    assert screen.text.splitlines()[-1].startswith('stopped: max_steps · 1 step · ')


async def test_an_error_of_the_model_is_one_line() -> None:
    screen = Screen()
    with pytest.raises(ModelError):
        await watch([ModelError('no such model\nat all')], screen.view)
    assert screen.text.splitlines()[-1] == 'failed: ModelError: no such model at all'


async def test_a_summary_and_the_notes_to_the_model_are_shown() -> None:
    screen = Screen()
    await watch(['', ANSWER, 'I multiplied.'], screen.view, summary='default')
    assert '(told the model: ' in screen.text
    assert screen.text.count('I multiplied.') == 1


async def test_an_approval_shows_what_would_change() -> None:
    def preview(path: str) -> str:
        return f'--- {path}\n+++ {path}\n-old\n+new'

    @tool(needs_approval=True, preview=preview)
    def overwrite(path: str) -> str:
        """Write a file."""
        return f'{path} written'

    def approve(_request: ApprovalRequest) -> bool:
        return True

    screen, seen = Screen(), Seen()
    source = code("said = overwrite('a.txt')\nfinal_answer(said)")
    await watch([source], screen.view, seen, tools=[overwrite], approve=approve)
    assert 'approval needed: ' in screen.text
    assert 'a.txt +1 −1\n-old\n+new\napproved: yes\n' in screen.text


async def test_two_agents_are_distinguished() -> None:
    screen = Screen()
    await watch(['A plan.'], screen.view, name='planner')
    await watch(['Work.'], screen.view, name='worker')
    assert '── worker ──\nworker · scripted:script\n' in screen.text
    assert '── planner' not in screen.text


async def test_much_output_is_shown_in_part() -> None:
    screen = Screen()
    await watch([code("for _ in range(60):\n    print('y' * 999)"), ANSWER], screen.view)
    assert screen.text.count('y') == pytest.approx(MAX_OUTPUT, abs=100)
    assert screen.text.count('… more was printed than is shown here') == 1
    assert 'done' in screen.text


def test_a_reader_who_goes_away_does_not_end_the_run() -> None:
    program = (
        'import asyncio, sys\n'
        'from habilis.agent import Agent\n'
        'from habilis.agent.hooks import TerminalView\n'
        'from habilis.models.scripted import ScriptedModel\n'
        f'agent = Agent(ScriptedModel([{ANSWER!r}]), hooks=[TerminalView()])\n'
        'sys.stdin.readline()\n'
        'print(asyncio.run(agent.run("x")).output, file=sys.stderr)\n'
    )
    with subprocess.Popen(
        [sys.executable, '-c', program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.close()
        child.stdout = None
        _, errors = child.communicate(b'go\n', timeout=600)
    assert errors.decode().split() == ['42']
    assert child.returncode == 0


# Single events --------------------------------------------------------------------------------------------------------


def show(event: AgentEvent, *, terminal: bool = False, width: int = 100) -> str:
    """One event."""
    screen = Screen(terminal=terminal, width=width)
    screen.view(event)
    return screen.plain


@each_case(
    ('kind', 'text', 'shown'),
    [
        ('notice', 'Half is done.', 'notice: Half is done.\n'),
        ('question', 'Which one?', 'question: Which one?\n'),
        ('compacted', 'earlier steps were shortened', 'earlier steps were shortened\n'),
        ('retry', 'busy', 'retry: busy; retrying in 1.0 s (attempt 2 of 4)\n'),
        ('hook_failed', 'mine: ValueError', 'hook failed: mine: ValueError\n'),
        ('tool_logged', '50 %', '50 %: 50 %\n'),
        ('run_failed', 'no', 'failed: ModelError: no\n'),
    ],
)
def test_what_is_said_of_an_event(kind: str, text: str, shown: str) -> None:
    assert show(sample(kind, text)).lstrip() == shown


def test_a_call_that_failed_says_why() -> None:
    record = ToolCall(id=1, tool='fetch', arguments={}, ok=False, error='TimeoutError: too slow', seconds=2)
    assert show(ToolReturned(call=record)) == '← fetch failed: TimeoutError: too slow (2.00 s)\n'


@pytest.mark.parametrize('width', [30, 100])
def test_a_call_with_long_arguments_and_results_is_one_line_of_the_terminal(width: int) -> None:
    call = GateCall(id=1, tool='fetch', arguments={'url': 'x' * 5000, 'body': 'a\nb\n' * 500})
    record = ToolCall(id=1, tool='fetch', arguments={}, ok=True, result='y' * 5000)
    for event in (ToolCalled(call=call), ToolReturned(call=record)):
        [line] = show(event, terminal=True, width=width).splitlines()
        assert len(line) <= width


def test_long_lines_are_not_broken_where_there_is_no_terminal() -> None:
    line = 'print(' + ' + '.join(map(str, range(100))) + ')'
    assert show(CodeEvent(code=line), width=40) == f'│ {line}\n'
    assert show(OutputEvent(stream='stdout', output='z' * 500), width=40) == 'z' * 500


def test_a_long_diff_is_shown_in_part() -> None:
    request = ApprovalRequest(id=1, tool='write', arguments={}, question='Write?', diff='+line\n' * 500)
    shown = show(ApprovalAsked(request=request))
    assert '… 440 more lines' in shown


# Hostile text ---------------------------------------------------------------------------------------------------------

LEFT = """
import asyncio, os, sys
from rich.console import Console
from habilis import Agent, ScriptedModel
from habilis.agent.hooks import TerminalView

code = "```python\\nfor n in range(300): print(n)\\n```"
agent = Agent(ScriptedModel([code, 'All is printed.']), hooks=[TerminalView(Console(stderr=True))])
print(agent.run_sync('Print much').output)
"""


@pytest.mark.parametrize('broken', ['reader', 'disk'])
def test_a_view_that_cannot_be_written_takes_nothing_else_with_it(broken: str, tmp_path: Path) -> None:
    whole = '"$@" 2> >(true)' if broken == 'reader' else '"$@" 2>/dev/full'
    done = subprocess.run(
        ['bash', '-c', whole, 'bash', sys.executable, '-c', LEFT],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, 'HABILIS_JOURNAL': 'off'},
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, 'All is printed.\n')


async def test_a_console_that_has_no_width_shows_the_run_all_the_same() -> None:
    screen = Screen(width=0)
    await watch(STORY, screen.view, tools=[double])
    assert 'done · 3 steps' in screen.text


async def test_a_question_is_shown_as_a_question() -> None:
    screen = Screen()
    result = await watch([code("ask_user('Which colour?')")], screen.view, tools=[people_toolset()])
    assert result.ended == 'question'
    assert 'question: Which colour?' in screen.text
    assert 'waiting for an answer · 1 step' in screen.text
    for word in ('NeedsAnswer', 'failed', 'stopped'):
        assert word not in screen.text


EVIL = '\x1b[2J\x1b]0;pwned\x07\x1b]52;c;cm0gLXJm\x07\x9b31m\rgone\x08\u202e[bold]x[/bold][/nothing] :smile: {x} %s'

SHORT = {
    'run_resumed',
    'approval_answered',
    'model_requested',
    'model_progress',
    'model_replied',
    'tool_progress',
    'step_started',
    'step_finished',
    'run_finished',
}
"""Of these no text is shown."""


def assert_nothing_is_obeyed(screen: Screen) -> None:
    """Only our own colours are left of what a terminal would obey."""
    for control in ('\x1b', '\x07', '\x08', '\x9b', '\r', '\u202e', '\u200f'):
        assert control not in screen.plain


@each_case('terminal', [False, True])
@each_case('kind', SAMPLES)
def test_nothing_that_is_shown_is_obeyed(kind: str, terminal: bool) -> None:
    screen = Screen(terminal=terminal)
    screen.view(sample(kind, f'I say {EVIL}\n' if kind == 'text' else EVIL, run='1', agent='one'))
    screen.view(sample('notice', 'end', run='2', agent=EVIL))
    assert_nothing_is_obeyed(screen)
    if kind not in SHORT:
        assert '[bold]x[/bold]' in screen.plain.replace('\n', '')


async def test_a_sandbox_that_prints_escape_sequences_changes_nothing_on_the_screen() -> None:
    screen = Screen(terminal=True)
    source = f'evil = {EVIL!r}\nimport sys\nprint(evil)\nprint(evil, file=sys.stderr)\nraise ValueError(evil)'
    answer = code(f'evil = {EVIL!r}\nfinal_answer(evil)')
    await watch([code(source), answer], screen.view, task=EVIL)
    assert_nothing_is_obeyed(screen)
    assert r'\x1b]0;pwned' in screen.plain


@each_case(
    'text', ['<http://x.test/%1b%5b2J>', '[a](http://x.test/%1b%5d0;t%07)', '&#27;[2J', '&#8238;', '&rlm;', '`\x9b`']
)
def test_markdown_cannot_smuggle_a_control_character_in(text: str) -> None:
    screen = Screen(terminal=True)
    screen.view(AnswerEvent(answer=f'# A\n\n{text}'))
    assert_nothing_is_obeyed(screen)


@given(
    st.lists(st.tuples(st.sampled_from(sorted(SAMPLES)), st.text(max_size=30)), max_size=8),
    st.booleans(),
    st.booleans(),
)
def test_any_events_in_any_order_are_shown(events: list[tuple[str, str]], terminal: bool, ascii_only: bool) -> None:
    screen = Screen(terminal=terminal, encoding='ascii' if ascii_only else 'utf-8')
    for kind, text in events:
        screen.view(sample(kind, text, run='1', agent='a'))
    for char in screen.plain:
        assert char in '\n\t' or char.isprintable() or ord(char) >= 0xA0


def test_a_terminal_that_knows_only_ascii_is_given_escapes() -> None:
    screen = Screen(encoding='ascii')
    screen.view(sample('notice', 'grün 日本 \ud800'))
    assert screen.text == 'notice: gr\\xfcn \\u65e5\\u672c \\ud800\n'


def test_a_real_model_is_not_called_scripted() -> None:
    class Real(ScriptedModel):
        @property
        def traits(self) -> Traits:
            return Traits()

    assert SCRIPTED not in show(RunStarted(task='x', model=Real([])))
    assert SCRIPTED in show(RunStarted(task='x', model=ScriptedModel([])))


async def test_the_cost_is_left_out_where_no_price_is_known() -> None:
    screen = Screen()
    await watch([Reply(text=ANSWER, usage=Usage(requests=1, input_tokens=1200, output_tokens=34))], screen.view)
    assert screen.text.splitlines()[-1].endswith('· 1,234 tokens (1,200 in, 34 out)')
