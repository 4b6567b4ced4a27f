"""Entry point of the `habilis` command."""

import os
import sys
from collections.abc import Callable, Sequence

from habilis.cli.streams import OutputLost, discard_output, is_piped, prepare_streams

SILENT = frozenset({'--quiet', '--json', '--help', '--plain'})
"""Options of `habilis run` and `chat` with which there is no status line."""

OWN_OPTIONS = frozenset({'-h', '--help', '--version', '--install-completion', '--show-completion'})
"""Options of `habilis` itself. Others without a command are those of the chat."""


def main() -> None:
    """Run the command. Errors are printed as one line, without a traceback."""
    try:
        prepare_streams()
        arguments = [*_meant_command(sys.argv[1:]), *sys.argv[1:]]
        stop_status = _show_first_sign(arguments)
        try:
            from habilis.cli.commands import entry_point

            entry_point(arguments)()
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


def _meant_command(arguments: Sequence[str]) -> list[str]:
    """The command of a command line that names none. One word may be a mistyped command."""
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    first = arguments[0] if arguments else ''
    if not first:
        return ['chat'] if on_terminal or is_piped() else []
    if first.startswith('-'):
        return [] if first in OWN_OPTIONS else ['chat']
    if any(character.isspace() for character in first):
        return ['chat'] if on_terminal else ['run']
    return []


def _show_first_sign(arguments: Sequence[str]) -> Callable[[], None]:
    """Show that a run or a chat has begun, before anything is imported. Returns a function that removes it.

    Typer parses options with pydantic, and importing both takes longer than a person waits gladly.
    """
    short = {letter for text in arguments if text[:1] == '-' != text[1:2] for letter in text}
    is_meant = arguments[:1] == ['chat'] or (arguments[:1] == ['run'] and len(arguments) > 1)
    if not is_meant or SILENT & set(arguments) or short & {'q', 'h'}:
        return lambda: None
    from habilis.core.status_line import StatusLine

    status = StatusLine()
    status.start('starting')
    return status.stop
