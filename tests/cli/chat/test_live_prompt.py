"""The prompt of a terminal: keys, type-ahead, questions, completion."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput, create_output

from habilis.cli.chat.completion import ChatCompleter, completes
from habilis.cli.chat.front import HOW_TO_LEAVE
from habilis.cli.chat.live_prompt import LivePrompt
from tests.cli.process import on_terminal


@pytest.fixture
async def keyboard() -> AsyncGenerator[PipeInput]:
    with create_pipe_input() as pipe:
        yield pipe


def prompt(keyboard: PipeInput, history: Path | None = None) -> LivePrompt:
    return LivePrompt(history=history, input=keyboard, output=DummyOutput())


async def printed(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wait until a text is printed above the prompt, which a thread does."""
    shown = ''
    async with asyncio.timeout(60):
        while text not in shown:
            await asyncio.sleep(0.05)
            shown += capsys.readouterr().out


async def test_messages_that_are_typed_ahead_are_not_lost(keyboard: PipeInput) -> None:
    one = prompt(keyboard)
    async with one.opened():
        keyboard.send_text('first\rsecond\rq\r')
        assert [await one.read(), await one.read(), await one.read()] == ['first', 'second', None]


@pytest.mark.parametrize('newline', ['\n', '\x1b\r', '\\\r'], ids=['Ctrl-J', 'Esc Enter', 'backslash'])
async def test_a_message_has_several_lines(keyboard: PipeInput, newline: str) -> None:
    one = prompt(keyboard)
    async with one.opened():
        keyboard.send_text(f'a{newline}b\r')
        assert await one.read() == 'a\nb'


async def test_what_is_pasted_is_not_sent(keyboard: PipeInput) -> None:
    one = prompt(keyboard)
    async with one.opened():
        keyboard.send_text('\x1b[200~def f():\r\n    return "é"\r\n\x1b[201~# end\r')
        assert await one.read() == 'def f():\n    return "é"\n# end'


async def test_a_file_that_is_dropped_is_attached_and_other_pasted_words_stay(
    keyboard: PipeInput, tmp_path: Path
) -> None:
    plot, sales = tmp_path / 'my plot.png', tmp_path / 'sales.csv'
    plot.touch()
    sales.touch()
    one = prompt(keyboard)
    pasted = {
        str(plot): f'@"{plot}" ',
        f"'{plot}'": f'@"{plot}" ',
        str(plot).replace(' ', '\\ '): f'@"{plot}" ',
        f'{plot.as_uri()}\r\n': f'@"{plot}" ',
        f'{sales} ': f'@{sales} ',
        'sales.csv': 'sales.csv',
        f'{sales} is old': f'{sales} is old',
        str(tmp_path / 'gone.csv'): str(tmp_path / 'gone.csv'),
    }
    async with one.opened():
        for text, typed in pasted.items():
            keyboard.send_text(f'See \x1b[200~{text}\x1b[201~\r')
            assert await one.read() == f'See {typed}'
        keyboard.send_text(f'!cat \x1b[200~{sales}\x1b[201~\r')
        assert await one.read() == f'!cat {sales}'


async def test_vim_keys_edit_the_line_and_esc_stops_only_outside_of_an_insertion(keyboard: PipeInput) -> None:
    one, stopped = prompt(keyboard), asyncio.Event()

    def stop() -> bool:
        stopped.set()
        return True

    one.on_stop = stop
    one.use_keys('vim')
    async with one.opened():
        keyboard.send_text('one two three\x1b0dwA!\r')
        assert (await one.read(), stopped.is_set()) == ('two three!', False)
        keyboard.send_text('again\x1b\x1b')
        await asyncio.wait_for(stopped.wait(), 60)
        one.use_keys('emacs')
        keyboard.send_text('\x01not \r')
        assert await one.read() == 'not again'


def test_of_a_long_message_only_the_start_is_repeated_without_control_sequences(
    keyboard: PipeInput, capsys: pytest.CaptureFixture[str]
) -> None:
    one = prompt(keyboard)
    one.echo('\n'.join(map(str, range(10_000))))
    shown = capsys.readouterr().out.splitlines()
    assert (shown[:2], shown[-1], len(shown)) == (['> 0', '  1'], '  … and 9,980 more lines', 21)
    one.echo('x' * 9_000)
    assert capsys.readouterr().out == f'> {"x" * 2_000}…\n'
    one.echo('a\x1b[31mb')
    assert '\x1b' not in capsys.readouterr().out


async def test_a_message_that_was_put_back_is_changed_and_sent_unless_another_one_was_begun(
    keyboard: PipeInput,
) -> None:
    one = prompt(keyboard)
    async with one.opened():
        keyboard.send_text('@sale.cs\r')
        one.put_back(str(await one.read()))
        one.put_back('another')
        keyboard.send_text('v\r')
        assert await one.read() == '@sale.csv'


@pytest.mark.parametrize('key', ['\x03', '\x1b'], ids=['Ctrl-C', 'Esc'])
async def test_a_key_stops_the_turn_and_keeps_what_is_typed(keyboard: PipeInput, key: str) -> None:
    one, stopped = prompt(keyboard), asyncio.Event()

    def stop() -> bool:
        stopped.set()
        return True

    one.on_stop = stop
    async with one.opened():
        keyboard.send_text(f'half{key}')
        await asyncio.wait_for(stopped.wait(), 60)
        keyboard.send_text(' done\r')
        assert await one.read() == 'half done'


async def test_ctrl_c_without_a_turn_clears_the_line_and_then_says_how_to_leave(
    keyboard: PipeInput, capsys: pytest.CaptureFixture[str]
) -> None:
    one = prompt(keyboard)
    with create_app_session(output=create_output(sys.stdout)):
        async with one.opened():
            keyboard.send_text('wrong\x03\x03right\r')
            assert await one.read() == 'right'
            keyboard.send_text('\x04')
            assert await one.read() is None
    await printed(HOW_TO_LEAVE, capsys)


async def test_a_question_takes_the_next_line_and_gives_back_what_was_typed(
    keyboard: PipeInput, capsys: pytest.CaptureFixture[str]
) -> None:
    one = prompt(keyboard)
    with create_app_session(output=create_output(sys.stdout)):
        async with one.opened():
            typed = asyncio.Event()

            def note(_: object) -> None:
                typed.set()

            one._session.default_buffer.on_text_changed += note  # pyright: ignore[reportPrivateUsage]
            keyboard.send_text('half')
            await typed.wait()
            asked = asyncio.ensure_future(one.ask('- old\n+ new\nMay it? [y/N] '))
            await asyncio.sleep(0)
            keyboard.send_text('y\r')
            assert await asked == 'y'
            keyboard.send_text(' done\r')
            assert await one.read() == 'half done'
    await printed('- old\n+ new\n', capsys)


async def test_a_question_that_is_dropped_has_no_answer(keyboard: PipeInput) -> None:
    one = prompt(keyboard)
    async with one.opened():
        asked = asyncio.ensure_future(one.ask('May it? '))
        await asyncio.sleep(0)
        one.drop_question()
        assert await asked is None


async def test_the_history_is_kept_in_a_private_file(keyboard: PipeInput, tmp_path: Path) -> None:
    file = tmp_path / 'data' / 'history'
    for typed, expected in (('one\r', 'one'), ('\x1b[A\r', 'one')):
        one = prompt(keyboard, file)
        async with one.opened():
            keyboard.send_text(typed)
            assert await one.read() == expected
    assert file.stat().st_mode & 0o077 == 0


def completions(text: str) -> list[str]:
    document = Document(text)
    return [one.text for one in ChatCompleter().get_completions(document, CompleteEvent())]


def test_commands_and_files_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'notes.txt').touch()
    (tmp_path / 'nodes').mkdir()
    (tmp_path / 'nodes' / 'a.txt').touch()
    (tmp_path / '.hidden').touch()
    assert completions('/mo') == ['/model', '/mode']
    assert completions('/memory se') == ['search']
    assert completions('read @no') == ['nodes/', 'notes.txt']
    assert completions('read @nodes/') == ['a.txt']
    assert completions('@') == ['nodes/', 'notes.txt']
    assert completions('@nowhere/x') == []
    assert completions('hello') == []
    assert [completes(Document(text)) for text in ('/m', 'a @n', 'hello', 'ann@example')] == [True, True, False, False]


PRINTS_LINES = """\
import asyncio
from rich.console import Console
from habilis.agent.hooks.console import SafeConsole
from habilis.cli.chat.live_prompt import LivePrompt
from tests.cli.process import on_terminal

async def main():
    prompt = LivePrompt(history=None)
    async with prompt.opened():
        with prompt.working('working'):
            console = SafeConsole(Console(highlight=False))
            for number in range(10_000):
                console.write(f'line {number}')
                if number % 50 == 0:
                    await asyncio.sleep(0.02)  # the prompt is drawn meanwhile
                console.write('\\n') if number % 2 else console.new_line()
                if number % 3 == 0:
                    print(f'more {number}', end='', flush=True)
                    print()

asyncio.run(main())
"""


def test_no_line_that_is_written_in_pieces_is_lost_above_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('PROMPT_TOOLKIT_NO_CPR', '1')
    with on_terminal('-c', PRINTS_LINES, command=(sys.executable,), columns=80) as terminal:
        shown = [line for line in terminal.read_all() if line.startswith(('line', 'more'))]
    wanted = [[f'line {number}', *([] if number % 3 else [f'more {number}'])] for number in range(10_000)]
    assert shown == [line for lines in wanted for line in lines]
