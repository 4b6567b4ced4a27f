"""Options of `habilis tools`."""

from typing import Annotated

import typer

from habilis.cli.options import folder

Name = Annotated[str, typer.Argument(metavar='NAME', help='Name of the tool.', show_default=False)]
Version = Annotated[
    int | None, typer.Option('--version', metavar='N', help='Version (default: the one in use).', min=1)
]
ModelName = Annotated[str | None, typer.Option('--model', '-m', metavar='MODEL', help='Model to use.')]
AsJson = Annotated[bool, typer.Option('--json', help='Print JSON.')]
LibraryFolder = Annotated[
    str | None,
    typer.Option(
        '--library', metavar='DIR', help='Folder of the library (default: from the settings).', callback=folder
    ),
]
Yes = Annotated[bool, typer.Option('--yes', '-y', help='Do not ask for confirmation.')]
