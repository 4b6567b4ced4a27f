"""The commands of `habilis`. Imports only typer, and a command when it is called, so that `--help` is fast."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

COMMANDS = {
    'chat': ('habilis.cli.chat.command', 'Chat with the agent (the default in a terminal).'),
    'run': ('habilis.cli.run.command', 'Run a task: the model writes Python, the sandbox executes it.'),
    'research': ('habilis.cli.research.command', 'Research a goal, and write a report that cites its sources.'),
    'map': ('habilis.cli.map.command', 'Run many tasks, each once: on all cores, or on a Ray or Dask cluster.'),
    'worker': ('habilis.cli.worker', 'Execute the queued runs of a store, beside other workers.'),
    'runs': ('habilis.cli.runs.command', 'List, inspect, resume, fork and export recorded runs.'),
    'tools': ('habilis.cli.tools.command', 'List, search, build, test, run, change and share the tools of a library.'),
    'skills': ('habilis.cli.skills.command', 'List, show, add, check, make and export Agent Skills.'),
    'mcp': ('habilis.cli.mcp.command', 'Serve to MCP clients; list, try and check MCP servers for the code.'),
    'memory': ('habilis.cli.memory.command', 'List, search, add, forget, export and import what is remembered.'),
    'tasks': ('habilis.cli.tasks.command', 'List, add, change and delete tasks.'),
    'sessions': ('habilis.cli.sessions.command', 'List, show and delete conversations.'),
    'demo': ('habilis.cli.demo.command', 'Run three small tasks and check their results.'),
    'models': ('habilis.cli.models', 'Show which model is used; list, install and remove embedded models.'),
    'doctor': ('habilis.cli.doctor.command', 'Check the installation and test the sandbox.'),
    'sandbox': ('habilis.cli.sandbox.command', 'Run Python in a sandbox: a file or an interactive prompt.'),
    'serve': ('habilis.cli.serve.command', 'Serve the assistant, or sandboxes, to people and programs.'),
}
"""Name of a subcommand: the module that defines its `app`, and its line in the help."""

EXAMPLES = """\b
Examples:
  habilis                                  chat
  habilis "What is in this folder?" -w .   chat, with a first message
  habilis --resume                         go on with a chat
  habilis run "What is the sum of the first 100 primes?"
  habilis run "Which region sold most?" < sales.csv
  habilis research "How do heat pumps work?" --out report.html
  habilis runs list                        list recorded runs
  habilis tools search "15 percent of 300" find a tool of the library
  habilis demo                             see the agent at work
  habilis doctor                           check the installation
  echo 'print(6 * 7)' | habilis sandbox run -
  habilis sandbox run script.py --seconds 5 --workspace data
  habilis sandbox repl                     start an interactive prompt
  habilis serve sandboxes                  let other programs use sandboxes of this machine

\b
See 'habilis COMMAND --help' for the options of a command.
"""


class LazyGroup(TyperGroup):
    """Imports a subcommand when it is called, not when it is listed."""

    def list_commands(self, ctx: object) -> list[str]:
        """Names of the subcommands, in help order."""
        return list(COMMANDS)

    def get_command(self, ctx: object, cmd_name: str) -> Any:
        """The subcommand. An unknown name loads all of them, so that typer can suggest one."""
        if cmd_name not in self.commands:
            for name in [cmd_name] if cmd_name in COMMANDS else COMMANDS:
                self.commands[name] = get_command(import_module(COMMANDS[name][0]).app)
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: object, formatter: Any) -> None:
        """Write the list of subcommands without importing them."""
        with formatter.section('Commands'):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


app = typer.Typer(
    cls=LazyGroup,
    epilog=EXAMPLES,
    invoke_without_command=True,
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
    context: typer.Context,
    version: Annotated[
        bool, typer.Option('--version', help='Show the version and exit.', callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """An agent that acts by writing Python, and the sandbox that executes it.

    Without a command it opens a chat: with options of it, with a first message, or with messages from a pipe.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


def entry_point(arguments: list[str]) -> Callable[[], object]:
    """What runs a command. The chat without options needs no parser, which takes longer to import than the prompt."""
    if arguments == ['chat']:
        return import_module(COMMANDS['chat'][0]).chat_without_options
    return partial(app, arguments, prog_name='habilis')
