"""Options of `habilis serve`."""

import asyncio
import contextlib
from typing import Annotated, Any

import typer

from habilis.cli import options
from habilis.cli.memory.options import EmbedderName
from habilis.cli.option_groups import WorkOptionsGroup, take, takes
from habilis.cli.serve import sandboxes, tokens
from habilis.cli.serve.listening import start_failures

EPILOG = """\b
Examples:
  habilis serve --open                           for you, on this machine, in your browser
  habilis serve --workspace . --model ollama:qwen3
  habilis serve token add ann                    let others in, each with a token of their own
  habilis serve sandboxes                        sandboxes for programs

\b
Other front-ends: http://127.0.0.1:8800/v1 speaks OpenAI's protocol.
"""

app = options.command_group('Serve the assistant, or sandboxes, to people and programs.', EPILOG, no_args_is_help=False)
app.command(epilog=sandboxes.EPILOG)(sandboxes.sandboxes)
app.add_typer(tokens.app, name='token')


@app.callback(invoke_without_command=True)
@takes(WorkOptionsGroup)
def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option('--host', metavar='ADDRESS', help='Address to listen on.')] = '127.0.0.1',
    port: Annotated[int, typer.Option('--port', metavar='PORT', help='Port to listen on; 0 for any.')] = 8800,
    certificate: Annotated[
        str | None, typer.Option('--certificate', metavar='FILE', help='Certificate for HTTPS, in PEM.')
    ] = None,
    certificate_key: Annotated[
        str | None, typer.Option('--certificate-key', metavar='FILE', help='Its private key, in PEM.')
    ] = None,
    plain_http: Annotated[
        bool, typer.Option('--plain-http', help='Serve other machines without encryption, as behind a proxy.')
    ] = False,
    is_opened: Annotated[bool, typer.Option('--open', help='Open the page in the browser.')] = False,
    embedder: EmbedderName = None,
    **given: Any,
) -> None:
    """Serve the assistant to your browser and to other programs; `sandboxes` serves sandboxes alone."""
    if context.invoked_subcommand is not None:
        return
    from habilis.cli.serve.assistant import serve_assistant
    from habilis.server.settings import AssistantSettings

    work = take(WorkOptionsGroup, given)
    work.check()
    request = work.request(settings={'embedder': embedder})
    with start_failures(), contextlib.suppress(KeyboardInterrupt):
        settings = AssistantSettings(
            host=host,
            port=port,
            users=tokens.users_file(),
            certificate=certificate,
            certificate_key=certificate_key,
            plain_http=plain_http,
        )
        asyncio.run(serve_assistant(request, settings, is_opened=is_opened))
