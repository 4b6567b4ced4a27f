"""`RayEngine`: runs as tasks of a Ray cluster."""

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from importlib import import_module

from habilis.flows.cluster import LIMIT, ClusterEngine, finish_run

try:
    ray = import_module('ray')
except ImportError as error:
    msg = 'Ray is not installed: pip install "habilis[ray]"'
    raise ImportError(msg) from error


class RayEngine(ClusterEngine):
    """An `Engine` on a Ray cluster. A task whose process or node dies is started again, on another node."""

    def __init__(
        self,
        store: str,
        *,
        apps: Sequence[str] = (),
        address: str | None = None,
        workers: int | None = None,
        limit: int = LIMIT,
        cpus: float = 1.0,
        memory: int | None = None,
        resources: Mapping[str, float] | None = None,
    ) -> None:
        """Make an engine; `start` connects it.

        Args:
            store: the URL of a store that all nodes can reach.
            apps: see `load_target`.
            address: the cluster; None for `RAY_ADDRESS`, or else a new one on this machine.
            workers: processes of a new cluster; None for one per core.
            limit: maximum number of tasks that Ray is given at a time.
            cpus: cores that Ray reserves for a run; less than 1 for runs that mostly wait for a model.
            memory: bytes that Ray reserves for a run.
            resources: further resources that a node must have, by the names that the cluster gives them: for sandboxes
                that need Docker, for example.
        """
        super().__init__(store, apps=apps, limit=limit)
        self._address = address
        self._workers = workers
        self._options = {'num_cpus': cpus, 'memory': memory, 'resources': dict(resources or {})}
        self._is_ours = False

    async def _connect(self) -> None:
        if ray.is_initialized():
            return
        options = {'num_cpus': self._workers} if self._address is None and self._workers is not None else {}
        ray.init(self._address, log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR, **options)
        self._is_ours = True

    async def _start(self, run: str) -> Awaitable[object]:
        # No exception of `finish_run` is retried: it is the state of the run, or a store that cannot be reached.
        task = ray.remote(finish_run).options(**self._options, max_retries=-1, retry_exceptions=False)
        reference = task.remote(self._url, run, self._apps)
        return _cancellable(reference)

    async def _disconnect(self) -> None:
        if self._is_ours:
            ray.shutdown()


async def _cancellable(reference: Awaitable[None]) -> None:
    try:
        await reference
    except asyncio.CancelledError:
        ray.cancel(reference, force=False)  # raises KeyboardInterrupt in its process, which puts the run back
        raise
