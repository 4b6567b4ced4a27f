"""Options of `habilis chat`. The prompt is shown first; what takes longer is imported while the user types."""

import asyncio
import os
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from habilis.cli import backend_options, options
from habilis.cli.chat.front import FrontEnd, PlainFront
from habilis.cli.interrupt import GRACE
from habilis.cli.memory.options import EmbedderName
from habilis.core.folders import data_folder
from habilis.core.status_line import current_status

if TYPE_CHECKING:
    from habilis.cli.chat.app import ChatApp
    from habilis.cli.run.request import CommandRequest

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
    model: options.ModelName = None,
    sandbox: options.SandboxName = None,
    sandbox_image: backend_options.Image = None,
    sandbox_url: backend_options.Url = None,
    allow_weak: backend_options.AllowWeak = False,
    workspace: options.Workspace = None,
    no_workspace: Annotated[
        bool, typer.Option('--no-workspace', help='Share no folder, and do not ask about this one.')
    ] = False,
    create: options.Create = False,
    checkpoints: options.Checkpoints = False,
    mode: options.Mode = None,
    delegate: options.Delegate = False,
    tools: options.Tools = None,
    mcp: options.Mcp = None,
    library: options.Library = None,
    skills: options.Skills = None,
    packages: options.Packages = None,
    network: options.Network = None,
    memory: Annotated[
        str | None, typer.Option('--memory', metavar='WHERE', help='Memory: a file or a URL (default: as set).')
    ] = None,
    embedder: EmbedderName = None,
    journal: options.RunJournal = None,
    user: options.User = None,
    base_url: options.BaseUrl = None,
    yes: options.Download = False,
    plain: Annotated[
        bool, typer.Option('--plain', help='No colours and no line that changes, for screen readers.')
    ] = False,
) -> None:
    """Chat with the agent: it answers, runs code, and remembers."""
    if base_url is not None and model is None:
        msg = 'name a model of this server with --model'
        raise typer.BadParameter(msg, param_hint='--base-url')
    workspace = options.existing_folder(workspace, create=create)
    if workspace is not None and no_workspace:
        msg = 'leave out --workspace or --no-workspace'
        raise typer.BadParameter(msg, param_hint='--no-workspace')
    if checkpoints and workspace is None and not resume:
        msg = 'give the folder whose files are stored with --workspace DIR'
        raise typer.BadParameter(msg, param_hint='--checkpoints')

    def request() -> 'CommandRequest':
        from habilis.cli.run.request import CommandRequest, ToolNames

        return CommandRequest(
            model=model,
            overrides={'base_url': base_url},
            settings={'sandbox': sandbox, 'journal': journal, 'user': user, 'memory': memory, 'embedder': embedder},
            backend=backend_options.BackendOptions(image=sandbox_image, url=sandbox_url, allow_weak=allow_weak),
            workspace=workspace,
            checkpoints=checkpoints,
            delegate=delegate,
            tools=ToolNames(names=options.words(tools), folder=os.getcwd()) if tools else None,
            mcp=mcp or (),
            library=library,
            skills=options.words(skills),
            packages=options.words(packages),
            network=options.words(network),
            download=yes,
        )

    if plain:
        os.environ.update(NO_COLOR='1', TERM='dumb')

    async def run() -> int:
        front = _front()
        current_status().stop()  # the first sign of life; the prompt takes its place
        async with front.opened():
            with front.working('starting'):
                app_class = await asyncio.to_thread(_load)
            wanted, said = (message or NEWEST, '') if resume else (None, message or '')
            app = app_class(front, request(), resume=wanted, mode=mode, may_share=not no_workspace)
            code = await app.run(said)
        _end_soon(code)
        return code

    raise typer.Exit(asyncio.run(run()))


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
