"""Options of `habilis memory`, `habilis tasks` and `habilis sessions`."""

from typing import Annotated

import typer

from habilis.cli.options import not_empty

Where = Annotated[
    str | None,
    typer.Option(
        '--memory', metavar='WHERE', help='File or URL of the memory (default: from the settings).', callback=not_empty
    ),
]
User = Annotated[str | None, typer.Option('--user', metavar='NAME', help='Whose memory (default: from the settings).')]
EmbedderName = Annotated[
    str | None,
    typer.Option(
        '--embedder',
        metavar='NAME',
        help='Search by meaning: off, minilm, or a model such as ollama:nomic-embed-text (default: from the settings).',
        callback=not_empty,
    ),
]
Limit = Annotated[int, typer.Option('--limit', metavar='N', help='Maximum number.', min=1)]
