"""`habilis worker`: execute the queued runs of a store."""

import asyncio
from typing import Annotated

import typer

from habilis.cli.settings import read_settings

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command()
def worker(
    store: Annotated[
        str | None,
        typer.Option('--store', metavar='URL', help='Store that all workers share (default: the journal setting).'),
    ] = None,
    apps: Annotated[
        list[str] | None, typer.Option('--app', metavar='MODULE', help='Module with flows; repeat for more.')
    ] = None,
    limit: Annotated[int, typer.Option('--limit', metavar='N', help='Maximum number of runs at a time.', min=1)] = 4,
    pause: Annotated[
        float, typer.Option('--pause', metavar='S', help='Seconds between two polls of the store.', min=0.01)
    ] = 0.2,
    deaths: Annotated[
        int, typer.Option('--deaths', metavar='N', help='How many processes may die of a run; then it fails.', min=1)
    ] = 3,
    until_empty: Annotated[bool, typer.Option('--until-empty', help='End when no run is queued or running.')] = False,
    until_eof: Annotated[bool, typer.Option('--until-eof', help='End when stdin is closed, too.')] = False,
) -> None:
    """Execute the queued runs of a store, beside other workers, and take over those whose process has died.

    Ends at SIGTERM and Ctrl-C; runs that are under way go back to the queue.
    """
    from habilis.flows.worker import WorkerOptions, serve

    read_settings()
    options = WorkerOptions(limit=limit, pause=pause, deaths=deaths, until_empty=until_empty)
    try:
        asyncio.run(serve(store, apps or (), until_eof=until_eof, **options))
    except ImportError as error:
        raise typer.BadParameter(str(error), param_hint='--app') from None
