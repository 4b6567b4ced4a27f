"""Options of `habilis tools`."""

from typing import Annotated

import typer

from habilis.forge.contract import Language

Name = Annotated[str, typer.Argument(metavar='NAME', help='Name of the tool.', show_default=False)]
Version = Annotated[
    int | None, typer.Option('--version', metavar='N', help='Version (default: the one in use).', min=1)
]
ModelName = Annotated[str | None, typer.Option('--model', '-m', metavar='MODEL', help='Model to use.')]
Examples = Annotated[
    list[str] | None,
    typer.Option('--example', metavar='CONDITION', help='What must hold, such as "f(2) == 4"; can be repeated.'),
]
Candidates = Annotated[
    int | None,
    typer.Option(
        '--candidates',
        metavar='N',
        help='Implementations to write side by side (default: 2; 3 by a small model).',
        min=1,
        max=20,
    ),
]
References = Annotated[
    list[str] | None,
    typer.Option(
        '--context',
        metavar='PATH_OR_URL',
        help='Folder, text file or link to a repository to build after; can be repeated.',
    ),
]
LanguageName = Annotated[
    Language | None,
    typer.Option('--language', help='What the tool is written in (default: Python, or that of a tool that fits).'),
]
