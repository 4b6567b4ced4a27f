"""Options of `habilis sandbox`. Other rooms are imported when a command runs, so that `--help` is fast."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from habilis.cli import backend_options
from habilis.cli.option_groups import take, takes
from habilis.cli.options import Network, command_group, folder, not_empty, words
from habilis.cli.streams import say

if TYPE_CHECKING:
    from habilis.cli.sandbox.terminal import SandboxChoice
    from habilis.sandbox.options import SandboxSettings

app = command_group('Run Python in a sandbox: a file or an interactive prompt.')

Seconds = Annotated[
    float | None, typer.Option('--seconds', metavar='S', help='Time limit of a cell in seconds (default: 30).')
]
MemoryMb = Annotated[
    int | None,
    typer.Option('--memory-mb', metavar='MB', help='Memory limit in MB, interpreter included (default: 256).'),
]
Workspace = Annotated[
    str | None,
    typer.Option(
        '--workspace',
        '-w',
        metavar='DIR',
        help='Folder to share; the sandbox mounts it as /workspace, its current folder.',
        callback=folder,
    ),
]
ReadOnly = Annotated[bool, typer.Option('--read-only', help='Mount the workspace read-only.')]
Backend = Annotated[
    str,
    typer.Option(
        '--sandbox',
        metavar='NAME',
        help='Sandbox backend: wasm, process, docker, remote, or auto: what the packages need.',
        callback=not_empty,
    ),
]
Packages = Annotated[
    list[str] | None,
    typer.Option('--packages', metavar='A,B', help='Packages the code may import: names, wheels or folders.'),
]
Env = Annotated[
    list[str] | None,
    typer.Option('--env', metavar='K=V', help='Environment variable for the sandbox. Can be repeated.'),
]

RUN_EPILOG = """\b
Exit codes:
  0 success    1 exception    n sys.exit(n)    2 usage error
  124 time limit    130 Ctrl-C    137 memory limit

\b
Examples:
  habilis sandbox run script.py
  echo '[n ** 2 for n in range(5)]' | habilis sandbox run -
  habilis sandbox run report.py --workspace data --read-only --packages tabulate
  habilis sandbox run plot.py --workspace . --packages pandas,matplotlib
  habilis sandbox run script.py --sandbox docker --sandbox-image python:3.13-slim
  habilis sandbox run script.py --json | jq .stdout
"""

REPL_EPILOG = """\b
Type :help for a list of commands. Ctrl-C stops the running cell, Ctrl-D exits.
With piped input there are no prompts, and the exit code is 1 if a cell failed.

\b
Examples:
  habilis sandbox repl --workspace .
  habilis sandbox repl --packages numpy
  printf 'x = 41\\nx + 1\\n' | habilis sandbox repl
"""


@dataclass(frozen=True, kw_only=True)
class SandboxOptionsGroup:
    """The sandbox of `habilis sandbox`, and of `habilis mcp serve`."""

    sandbox: Backend = 'auto'
    seconds: Seconds = None
    memory_mb: MemoryMb = None
    workspace: Workspace = None
    read_only: ReadOnly = False
    packages: Packages = None
    env: Env = None
    network: Network = None
    sandbox_image: backend_options.Image = None
    sandbox_url: backend_options.Url = None
    allow_weak: backend_options.AllowWeak = False

    def choice(self) -> 'SandboxChoice':
        """The backend with the arguments for `Sandbox.create`. An option of another backend is a usage error."""
        from habilis.cli.sandbox.terminal import SandboxChoice
        from habilis.cli.settings import usage_errors
        from habilis.sandbox.backends import names

        settings = self._settings()
        if self.sandbox not in (known := [*names(), 'auto']):
            msg = f'there is no sandbox {self.sandbox!r}; there is {", ".join(known)}'
            raise typer.BadParameter(msg, param_hint='--sandbox')
        own = backend_options.BackendOptions(image=self.sandbox_image, url=self.sandbox_url, allow_weak=self.allow_weak)
        with usage_errors():
            own.check(self.sandbox)
            return SandboxChoice(self.sandbox, {**settings, **own.settings_for(self.sandbox)})

    def _settings(self) -> 'SandboxSettings':
        if self.read_only and self.workspace is None:
            msg = '--read-only needs a workspace; name a folder with --workspace'
            raise typer.BadParameter(msg, param_hint='--read-only')
        from habilis.core.limits import Limits

        given = {'seconds': self.seconds, 'memory_mb': self.memory_mb}
        try:
            limits = Limits(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
        except ValueError as error:
            raise typer.BadParameter(str(error).replace('Limits.', '--').replace('_', '-')) from None
        return {
            'limits': limits,
            'workspace': self.workspace,
            'read_only': self.read_only,
            'packages': words(self.packages),
            'env': dict(map(_variable, self.env or [])),
            'network': words(self.network) or None,
        }


@app.command(epilog=RUN_EPILOG)
@takes(SandboxOptionsGroup)
def run(
    file: Annotated[str, typer.Argument(metavar='FILE|-', help='Python file, or - to read stdin.', show_default=False)],
    json: Annotated[bool, typer.Option('--json', help='Print the whole result as one JSON object.')] = False,
    **given: Any,
) -> None:
    """Run a file in a new sandbox. Prints its output, then the value of its last expression or its error."""
    choice = take(SandboxOptionsGroup, given).choice()
    from habilis.cli.sandbox.run import SourceError, run_file

    try:
        code = run_file(file, choice, as_json=json)
    except SourceError as error:
        say(str(error))
        code = 2
    raise typer.Exit(code)


@app.command(epilog=REPL_EPILOG)
@takes(SandboxOptionsGroup)
def repl(**given: Any) -> None:
    """Start an interactive prompt in a sandbox. Variables persist; top-level `await` works."""
    choice = take(SandboxOptionsGroup, given).choice()
    from habilis.cli.sandbox.repl import interact

    raise typer.Exit(interact(choice))


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition('=')
    if not equals or not name:
        msg = f'{text!r} is not NAME=VALUE'
        raise typer.BadParameter(msg, param_hint='--env')
    return name, value
