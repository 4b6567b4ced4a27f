"""Entry point of the `habilis` command."""

import os
import sys
from collections.abc import Callable, Sequence

from habilis.cli.streams import OutputLost, discard_output, prepare_streams

SILENT = frozenset({'--quiet', '--json', '--help'})
"""Options of `habilis run` with which there is no status line."""


def main() -> None:
    """Run the command. Errors are printed as one line, without a traceback."""
    try:
        prepare_streams()
        stop_status = _show_first_sign(sys.argv[1:])
        try:
            from habilis.cli.commands import app

            app(prog_name='habilis')
        finally:
            stop_status()
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of stdout has closed it
        discard_output(sys.stdout)
        sys.exit(1)
    except OutputLost as error:
        discard_output(sys.stdout)
        sys.exit(f'habilis: {error}')
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if os.environ.get('HABILIS_TRACEBACK'):
            raise
        sys.exit(f'habilis: {describe_error(error)}')


def describe_error(error: Exception) -> str:
    """An error in one line for the user."""
    from habilis.core.errors import HabilisError

    if isinstance(error, HabilisError):
        return str(error)
    kind = type(error).__name__
    return f'unexpected {kind}: {error} (a bug in Habilis; set HABILIS_TRACEBACK=1 to see the traceback)'


def _show_first_sign(arguments: Sequence[str]) -> Callable[[], None]:
    """Show that a run has begun, before anything is imported. Returns a function that removes it.

    Typer parses options with pydantic, and importing both takes longer than a person waits gladly.
    """
    short = {letter for text in arguments if text[:1] == '-' != text[1:2] for letter in text}
    if arguments[:1] != ['run'] or len(arguments) == 1 or SILENT & set(arguments) or short & {'q', 'h'}:
        return lambda: None
    from habilis.core.status_line import StatusLine

    status = StatusLine()
    status.start('starting')
    return status.stop
