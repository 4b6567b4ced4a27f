"""Options of `habilis chat`. The prompt is shown first; what takes longer is imported while the user types."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from habilis.cli import options
from habilis.cli.chat.front import FrontEnd, PlainFront
from habilis.cli.interrupt import GRACE
from habilis.cli.memory.options import EmbedderName
from habilis.cli.option_groups import WorkOptionsGroup, take, takes
from habilis.core.folders import data_folder
from habilis.core.status_line import current_status

if TYPE_CHECKING:
    from habilis.cli.chat.app import ChatApp

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)

EPILOG = """\b
Type /help in the chat for its commands and keys. q, /quit or Ctrl-D leaves.

\b
Examples:
  habilis chat
  habilis chat "What is in this folder?" --workspace .
  habilis chat --model ollama:qwen3 --workspace . --checkpoints
  habilis chat --resume                    go on with a chat
  echo "What is 6 * 7?" | habilis chat
"""


NEWEST = ''
"""The conversation to resume if none is named."""


@app.command(epilog=EPILOG)
@takes(WorkOptionsGroup)
def chat(
    message: Annotated[
        str | None,
        typer.Argument(
            metavar='MESSAGE', help='The first message; with --resume, the id of the chat.', show_default=False
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option('--resume', '-r', help='Go on with a recorded chat: that of an id, or one of a list.')
    ] = False,
    no_workspace: Annotated[
        bool, typer.Option('--no-workspace', help='Share no folder, and do not ask about this one.')
    ] = False,
    mode: options.Mode = None,
    memory: Annotated[
        str | None, typer.Option('--memory', metavar='WHERE', help='Memory: a file or a URL (default: as set).')
    ] = None,
    embedder: EmbedderName = None,
    plain: Annotated[
        bool, typer.Option('--plain', help='No colours and no line that changes, for screen readers.')
    ] = False,
    **given: Any,
) -> None:
    """Chat with the agent: it answers, runs code, and remembers."""
    work = take(WorkOptionsGroup, given)
    work.check(needs_folder=not resume)
    if work.workspace is not None and no_workspace:
        msg = 'leave out --workspace or --no-workspace'
        raise typer.BadParameter(msg, param_hint='--no-workspace')
    if plain:
        os.environ.update(NO_COLOR='1', TERM='dumb')
    wanted, said = (message or NEWEST, '') if resume else (None, message or '')

    def make(front: FrontEnd, kind: 'type[ChatApp]') -> 'ChatApp':
        request = work.request(settings={'memory': memory, 'embedder': embedder})
        return kind(front, request, resume=wanted, mode=mode, may_share=not no_workspace)

    raise typer.Exit(asyncio.run(_run(make, said)))


def chat_without_options() -> None:
    """`habilis chat` alone, which needs no parser."""
    defaults: dict[str, Any] = {field.name: field.default for field in fields(WorkOptionsGroup)}
    try:
        chat(**defaults)
    except typer.Exit as ended:
        sys.exit(ended.exit_code)
    except typer.BadParameter as error:  # of the settings
        error.show()
        sys.exit(error.exit_code)


async def _run(make: 'Callable[[FrontEnd, type[ChatApp]], ChatApp]', said: str) -> int:
    """Show the prompt, then load what answers, and chat until the user leaves."""
    front = _front()
    current_status().stop()  # the first sign of life; the prompt takes its place
    async with front.opened():
        with front.working('starting'):
            kind = await asyncio.to_thread(_load)
        code = await make(front, kind).run(said)
    _end_soon(code)
    return code


def _end_soon(code: int) -> None:
    """End the process shortly, also if a thread is still busy, such as one that builds a sandbox: the user has left."""
    timer = threading.Timer(GRACE, os._exit, (code,))
    timer.daemon = True
    timer.start()


def _front() -> FrontEnd:
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get('TERM') == 'dumb':
        return PlainFront()
    from habilis.cli.chat.live_prompt import LivePrompt

    return LivePrompt(history=data_folder() / 'chat_history')


def _load() -> 'type[ChatApp]':
    """Import what answers messages."""
    from habilis.cli.chat.app import ChatApp

    return ChatApp
