"""The recorded runs as MCP resources: `habilis://runs` lists them, `habilis://runs/ID` has one whole."""

import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import asdict
from urllib.parse import quote, unquote

from habilis.flows.run_json import run_as_json
from habilis.journal import Store
from habilis.journal.runs import ListedRun, list_runs, read_run
from habilis.server.mcp.settings import McpSettings

RUNS = 'habilis://runs'
MAX_RUNS = 100
"""The newest runs that the list has."""


class RunHistory:
    """The runs of one user."""

    def __init__(self, settings: McpSettings) -> None:
        self._settings = settings

    async def newest(self, limit: int) -> list[ListedRun]:
        """The newest runs, newest first."""
        async with self._store() as store:
            return (await list_runs(store, user=self._settings.user))[:limit] if store is not None else []

    async def read(self, uri: str) -> str | None:
        """The content of a resource as JSON; None if it is not one of these. Raises `RunNotFound`."""
        if uri == RUNS:
            listed = await self.newest(MAX_RUNS)
            return json.dumps([{**asdict(each.info), 'status': each.state, 'uri': run_uri(each)} for each in listed])
        if not uri.startswith(f'{RUNS}/'):
            return None
        async with self._store() as store:
            if store is None:
                return None
            reading = await read_run(store, unquote(uri.removeprefix(f'{RUNS}/')), user=self._settings.user)
            return json.dumps(await run_as_json(reading))

    @contextlib.asynccontextmanager
    async def _store(self) -> AsyncGenerator[Store | None]:
        if self._settings.open_journal is None:
            yield None
            return
        store = self._settings.open_journal()
        try:
            yield store
        finally:
            await store.close()


def run_uri(listed: ListedRun) -> str:
    """The address of a run."""
    return f'{RUNS}/{quote(listed.info.run, safe="")}'
