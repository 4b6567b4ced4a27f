"""The `docker` backend."""

import atexit
import os
import threading
from queue import SimpleQueue

from habilis.core.limits import Limits
from habilis.sandbox.contract import Guest, GuestSpec, Mount, PythonTarget
from habilis.sandbox.docker.engine import INSIDE, DockerEngine
from habilis.sandbox.docker.guest import MARK, DockerGuest
from habilis.sandbox.host.warm_guests import SilentHost, WarmGuests

DEFAULT_IMAGE = 'python:3.14-slim'
NOBODY = '65534:65534'
PROCESSES = 128
"""Maximum number of processes and threads of a container."""

_START = f"""
import sys
sys.path.insert(0, {INSIDE!r})
from habilis.sandbox.docker.first_process import main
main({{'mark': {MARK.decode()!r}}})
"""


class DockerBackend:
    """CPython of any image, in a container per sandbox: no network, no rights, a read-only system."""

    has_processes = True

    def __init__(self, image: str = DEFAULT_IMAGE) -> None:
        self._image = image
        self._lock = threading.Lock()
        self._engine: DockerEngine | None = None
        self._prepared = ''
        self._warm_guests: WarmGuests[DockerGuest] | None = None
        self._removed: SimpleQueue[str | None] = SimpleQueue()

    @property
    def isolation(self) -> str:
        """How the code is isolated."""
        runtime = ' by gVisor' if self._engine is not None and self._engine.has_gvisor else ''
        return f'a container of the image {self._image}, run{runtime} without network, capabilities and writable system'

    @property
    def python(self) -> PythonTarget:
        """The Python of the image. May block."""
        engine, _ = self._load()
        return engine.python_of(self._prepared)

    def start(self, spec: GuestSpec) -> Guest:
        """Start a container; a warm one, if it needs no folder of the host."""
        engine, warm_guests = self._load()
        warm = None if spec.mounts else warm_guests.take()
        if warm is None:
            return self._start(engine, spec)
        limits = _memory_and_cpu(spec.limits)
        if limits != _memory_and_cpu(Limits()):
            engine.update(warm.container, limits)
        return warm

    def _load(self) -> tuple[DockerEngine, WarmGuests[DockerGuest]]:
        with self._lock:
            if self._engine is None or self._warm_guests is None:
                engine = DockerEngine()
                engine.remove_abandoned()
                self._prepared = engine.with_guest(self._image)
                remover = threading.Thread(target=self._remove_all, args=(engine,), name='habilis-docker', daemon=True)
                remover.start()
                atexit.register(self._finish, remover)
                self._warm_guests = WarmGuests(lambda: self._warm(engine))
                self._engine = engine
            return self._engine, self._warm_guests

    def _start(self, engine: DockerEngine, spec: GuestSpec) -> DockerGuest:
        container = engine.create(
            self._prepared,
            ['python3', '-c', _START],
            host=_host_config(engine, spec),
            user=_user(engine, spec.mounts),
            environment={'HOME': '/tmp'},
            working_dir='/tmp',
            stdin_open=True,
        )
        try:
            guest = DockerGuest(engine, container, self._removed.put)  # before the start: no output is missed
            engine.start(container)
        except BaseException:
            engine.remove(container)
            raise
        return guest

    def _warm(self, engine: DockerEngine) -> DockerGuest:
        guest = self._start(engine, GuestSpec())
        guest.enter('{"op":"warm"}', SilentHost())
        return guest

    def _remove_all(self, engine: DockerEngine) -> None:
        """Remove containers as their guests are closed: it takes longer than anybody should wait."""
        while (container := self._removed.get()) is not None:
            engine.remove(container)

    def _finish(self, remover: threading.Thread) -> None:
        self._removed.put(None)
        remover.join(10.0)


def _memory_and_cpu(limits: Limits) -> dict[str, int]:
    memory = limits.memory_mb << 20
    return {'mem_limit': memory, 'memswap_limit': memory, 'cpu_period': 100_000, 'cpu_quota': int(limits.cpu * 100_000)}


def _host_config(engine: DockerEngine, spec: GuestSpec) -> dict[str, object]:
    return {
        **_memory_and_cpu(spec.limits),
        'read_only': True,
        'tmpfs': {'/tmp': f'rw,nosuid,nodev,mode=1777,size={spec.limits.memory_mb}m'},
        'pids_limit': PROCESSES,
        'ulimits': [{'Name': 'core', 'Soft': 0, 'Hard': 0}],
        'log_config': {'Type': 'none'},  # else the engine writes every message to a file
        'mounts': [_bind(mount) for mount in spec.mounts],
        **({'runtime': 'runsc'} if engine.has_gvisor else {}),
    }


def _bind(mount: Mount) -> dict[str, object]:
    # Other disks below a read-only folder would be writable with an older engine, so they are left out.
    options = {} if mount.writable else {'NonRecursive': True}
    return {
        'Type': 'bind',
        'Source': str(mount.source),
        'Target': mount.target,
        'ReadOnly': not mount.writable,
        'BindOptions': {'Propagation': 'rprivate', **options},
    }


def _user(engine: DockerEngine, mounts: tuple[Mount, ...]) -> str:
    """Nobody; with folders of the host, the user of this process, who may use them and owns what is made there."""
    if not mounts or not hasattr(os, 'getuid'):
        return NOBODY
    return '0:0' if engine.is_rootless else f'{os.getuid()}:{os.getgid()}'
