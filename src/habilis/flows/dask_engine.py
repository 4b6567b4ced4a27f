"""`DaskEngine`: runs as tasks of a Dask cluster."""

from collections.abc import Awaitable, Mapping, Sequence
from importlib import import_module
from typing import Any

from habilis.flows.cluster import LIMIT, ClusterEngine, finish_run

try:
    distributed = import_module('distributed')
except ImportError as error:
    msg = 'Dask is not installed: pip install "habilis[dask]"'
    raise ImportError(msg) from error


class DaskEngine(ClusterEngine):
    """An `Engine` on a Dask cluster. A task whose worker dies is started again on another one."""

    def __init__(
        self,
        store: str,
        *,
        apps: Sequence[str] = (),
        address: str | None = None,
        workers: int | None = None,
        limit: int = LIMIT,
        resources: Mapping[str, float] | None = None,
    ) -> None:
        """Make an engine; `start` connects it.

        Args:
            store: the URL of a store that all workers can reach.
            apps: see `load_target`.
            address: the scheduler; None for a new cluster on this machine.
            workers: processes of a new cluster; None for one per core.
            limit: maximum number of tasks that Dask is given at a time.
            resources: what a worker must have, by the names that the cluster gives them.
        """
        super().__init__(store, apps=apps, limit=limit)
        self._given = {} if address else {'n_workers': workers, 'threads_per_worker': 1, 'dashboard_address': None}
        self._address = address
        self._resources = dict(resources or {}) or None
        self._client: Any = None

    async def _connect(self) -> None:
        self._client = await distributed.Client(self._address, asynchronous=True, **self._given)

    async def _start(self, run: str) -> Awaitable[object]:
        return self._client.submit(finish_run, self._url, run, self._apps, resources=self._resources, pure=False)

    async def _disconnect(self) -> None:
        if self._client is not None:
            await self._client.close()
