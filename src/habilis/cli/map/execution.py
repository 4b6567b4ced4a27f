"""Execute `habilis map`: start an engine, give it the tasks, write the results."""

import contextlib
import os
import sys
from collections.abc import AsyncGenerator, Sequence

import typer

from habilis.cli.interrupt import INTERRUPTED, run_interruptible
from habilis.cli.map.agents import FROM_OPTIONS
from habilis.cli.map.options import MapOptionsGroup
from habilis.cli.map.results import MapSummary, Write, results_file
from habilis.cli.map.task_file import read_tasks
from habilis.cli.model_choice import ModelRequest, choose_model
from habilis.cli.program import load_object
from habilis.cli.run.request import META_KEY, CommandRequest
from habilis.cli.settings import read_settings
from habilis.cli.streams import say
from habilis.cli.terminal_user import TerminalUser
from habilis.core.codec import pack
from habilis.core.folders import data_folder
from habilis.core.settings import Settings
from habilis.core.status_line import current_status
from habilis.flows.engine import Engine
from habilis.flows.mapping import IN_FLIGHT, MapTask, TaskMap, map_tasks
from habilis.flows.pool import WorkerPool
from habilis.flows.stores import store_handle


def execute(file: str, options: MapOptionsGroup, request: CommandRequest) -> int:
    """Run the tasks of a file, print a summary, and return the exit code. Raises `HabilisError`."""
    tasks = read_tasks(file)
    settings = read_settings(request.load_settings)
    _make_importable(os.getcwd())
    execution = MapExecution(tasks, options, request, settings)
    status = current_status()
    try:
        with results_file(options.output) as write:
            run_interruptible(lambda: execution.run(write), last_words=execution.last_words)
    except KeyboardInterrupt:
        status.stop()
        say(execution.last_words())
        return INTERRUPTED
    finally:
        status.stop()
    if not options.quiet:
        execution.summary.print()
    return execution.summary.exit_code


class MapExecution:
    """One map, with its summary."""

    def __init__(
        self, tasks: Sequence[MapTask], options: MapOptionsGroup, request: CommandRequest, settings: Settings
    ) -> None:
        self._tasks = tasks
        self._options = options
        self._request = request
        self._settings = settings
        self.summary = MapSummary()

    def last_words(self) -> str:
        """What to tell the user after Ctrl-C."""
        return f'interrupted after {self.summary.all.tasks:,} of {len(self._tasks):,} tasks; the same command resumes'

    async def run(self, write: Write) -> None:
        """Give the tasks to the engine, and write each outcome."""
        options = self._options
        what = TaskMap(
            app=options.app or FROM_OPTIONS,
            options=await self._agent_options(),
            user=self._settings.user or '',
            retry=options.retry,
            budget=options.budget,
            reserve=float(str(self._request.settings.get('max_cost') or 0)),
            in_flight=max(IN_FLIGHT, 4 * options.limit * _count(options.workers)),
        )
        url = self._settings.journal or f'sqlite:{data_folder() / "runs.db"}'
        handle = await store_handle(url)
        try:
            async with (
                _engine(options, url) as engine,
                contextlib.aclosing(map_tasks(what, self._tasks, engine=engine, store=handle.store)) as outcomes,
            ):
                self._show()
                async for outcome in outcomes:
                    write(outcome)
                    self.summary.add(outcome)
                    self._show()
        finally:
            await handle.close()

    def _show(self) -> None:
        if not self._options.quiet:
            current_status().start(f'{self.summary.all.tasks:,}/{len(self._tasks):,}: {self.summary.text}')

    async def _agent_options(self) -> object:
        """What the workers make the agent of. Says which model it has, and downloads it if need be."""
        if self._options.app is not None:
            load_object(self._options.app, option='--app', example='my_program:agent')
            return None
        request = self._request
        wanted = ModelRequest(
            name=request.model, option='--model', overrides=request.overrides, download=request.download
        )
        model = await choose_model(
            wanted, self._settings, TerminalUser(), lambda text: None if request.quiet else say(text)
        )
        try:
            return pack(request.to_meta(model, self._settings)[META_KEY])
        finally:
            await model.close()


@contextlib.asynccontextmanager
async def _engine(options: MapOptionsGroup, store: str) -> AsyncGenerator[Engine]:
    """The engine that the options name, started."""
    if options.engine == 'local':
        async with WorkerPool(store, apps=(), workers=_count(options.workers), limit=options.limit) as pool:
            yield pool
        return
    try:
        if options.engine == 'ray':
            from habilis.flows.ray_engine import RayEngine as ClusterEngine
        else:
            from habilis.flows.dask_engine import DaskEngine as ClusterEngine
    except ImportError as error:
        raise typer.BadParameter(str(error), param_hint='--engine') from None
    workers = None if options.workers == 'auto' else _count(options.workers)
    async with ClusterEngine(store, address=options.address, workers=workers) as engine:
        yield engine


def _count(workers: str) -> int:
    """The number of worker processes; `auto` is one for each core that this process may use."""
    return len(os.sched_getaffinity(0)) if workers == 'auto' else int(workers)


def _make_importable(folder: str) -> None:
    """Let this process and its workers import the user's program."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
