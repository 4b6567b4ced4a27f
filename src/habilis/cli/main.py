"""The `habilis` command. Only typer is imported here: whoever asks for help should not wait for anything else."""

import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from habilis.cli.streams import OutputLost, lead_nowhere, prepare_streams

COMMANDS = {
    'run': ('habilis.cli.run.command', 'Do a task: the model writes Python, the sandbox runs it.'),
    'runs': (
        'habilis.cli.runs.command',
        'The runs that were kept: look at them, go on with them, fork them.',
    ),
    'demo': ('habilis.cli.demo.command', 'Three small tasks that show the agent at work, and check themselves.'),
    'models': ('habilis.cli.models', 'Which model would be used and why; list, install and remove embedded models.'),
    'doctor': ('habilis.cli.doctor.command', 'Look at what is here and what is missing, and test the sandbox.'),
    'sandbox': ('habilis.cli.sandbox.command', 'Run Python that cannot touch this machine: a file, or an interactive prompt.'),
    'bench': ('habilis.cli.bench', 'Measure speed and memory, beside the peers that are installed.'),
}
"""Name of a subcommand, the module that holds its `app`, and its line in the help."""

EXAMPLES = """\b
Examples:
  habilis run "What is the sum of the first 100 primes?"
  habilis run "Which region sold most?" < sales.csv
  habilis runs list                        what was done, and what can be gone on with
  habilis demo                             see the agent at work
  habilis doctor                           is all in place?
  echo 'print(6 * 7)' | habilis sandbox run -
  habilis sandbox run script.py --seconds 5 --workspace data
  habilis sandbox repl                     an interactive prompt
  habilis bench sandbox --quick            the numbers, in a minute

\b
Each subcommand explains itself: habilis sandbox run --help
"""


class LazyGroup(TyperGroup):
    """Imports a subcommand when it is called, not when it is listed."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The subcommand. For a name that is unknown all are loaded, so that typer can suggest one."""
        if cmd_name not in self.commands:
            for name in [cmd_name] if cmd_name in COMMANDS else COMMANDS:
                self.commands[name] = get_command(import_module(COMMANDS[name][0]).app)
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list in the help, without loading anything."""
        with formatter.section('Commands'):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


app = typer.Typer(
    cls=LazyGroup,
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={'help_option_names': ['-h', '--help']},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from habilis._version import __version__

        typer.echo(f'habilis {__version__}')
        raise typer.Exit


@app.callback()
def habilis(
    version: Annotated[
        bool, typer.Option('--version', help='Show the version and exit.', callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Habilis: an agent that acts by writing Python, and the sandbox that runs it, started in milliseconds."""


def main() -> None:
    """Run the command. Whatever happens, its user sees a sentence and not a traceback."""
    try:
        prepare_streams()
        try:
            app(prog_name='habilis')
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read our output has seen enough
        lead_nowhere(sys.stdout)
        sys.exit(1)
    except OutputLost as error:
        lead_nowhere(sys.stdout)
        sys.exit(f'habilis: {error}')
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if os.environ.get('HABILIS_TRACEBACK'):
            raise
        sys.exit(f'habilis: {_explain(error)}')


def _explain(error: Exception) -> str:
    from habilis.core.errors import HabilisError

    if isinstance(error, HabilisError):
        return str(error)
    kind = type(error).__name__
    return f'unexpected {kind}: {error} (a bug of Habilis; HABILIS_TRACEBACK=1 shows where)'
