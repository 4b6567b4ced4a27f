"""The Docker engine, through its SDK: the only module that imports it. Errors say what to do."""

import contextlib
import io
import tarfile
import time
import weakref
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

from habilis.core.errors import BackendNotFound, SandboxError
from habilis.core.owners import new_owner, owner_state
from habilis.sandbox.contract import PythonTarget
from habilis.sandbox.host.guest_folder import guest_folder

try:
    import docker
    import docker.utils
    from docker.errors import APIError, DockerException, ImageNotFound, NotFound
except ImportError as error:
    msg = 'the Docker SDK is missing: pip install "habilis[docker]"'
    raise ImportError(msg) from error

OWNER = 'habilis.owner'
"""Label of a container: the process that started it."""

PYTHON = 'habilis.python'
"""Label of an image with the guest: version of its Python, machine and version of glibc."""

GUEST_OF = 'habilis.guest-of'
"""Label of an image with the guest: the image that it was made from."""

INSIDE = '/opt/habilis'
FIRST_PROCESS = 'sandbox/docker/first_process.py'
SECONDS = 60
KEEP_SECONDS = 86_400
OLDEST_GLIBC = 17
OLDEST = 3, 9
"""The oldest Python that runs the guest."""

_PREPARE = """
import compileall, platform, sys
oldest = {oldest}
if sys.version_info < oldest:
    sys.exit('it has Python %d.%d; use one with Python %d.%d or later' % (sys.version_info[:2] + oldest))
compileall.compile_dir({inside!r}, quiet=2)
print('%d.%d' % sys.version_info[:2], platform.machine(), platform.libc_ver()[1] or 'musl')
"""
_LOCKED_DOWN = {'network_mode': 'none', 'cap_drop': ['ALL'], 'security_opt': ['no-new-privileges:true']}


class DockerEngine:
    """The engine that `DOCKER_HOST` or the default socket names."""

    def __init__(self, seconds: int = SECONDS) -> None:
        self.owner = new_owner()
        try:
            place = docker.utils.kwargs_from_env()  # pyright: ignore[reportUnknownMemberType]
            self.api: Any = docker.APIClient(version='auto', timeout=seconds, **place)
            self._info: dict[str, Any] = self.api.info()
        except DockerException as error:
            raise BackendNotFound(_no_engine(error)) from error
        weakref.finalize(self, self.api.close)

    @property
    def version(self) -> str:
        """Its version."""
        return str(self._info.get('ServerVersion') or 'of an unknown version')

    @property
    def has_gvisor(self) -> bool:
        """Whether gVisor's runtime is installed."""
        return 'runsc' in (self._info.get('Runtimes') or {})

    @property
    def is_rootless(self) -> bool:
        """Whether the engine runs as an ordinary user, who is root inside."""
        return any('rootless' in option for option in self._info.get('SecurityOptions') or ())

    def create(self, image: str, command: list[str], *, host: Mapping[str, object], **options: object) -> str:
        """Create a container without network and rights, labelled as ours. Returns its id."""
        settings = self.api.create_host_config(**{**_LOCKED_DOWN, **host})
        with _explained():
            made = self.api.create_container(
                image, entrypoint=command, command=[], labels={OWNER: self.owner}, host_config=settings, **options
            )
        return str(made['Id'])

    def start(self, container: str) -> None:
        """Start a container."""
        with _explained():
            self.api.start(container)

    def update(self, container: str, limits: Mapping[str, int]) -> None:
        """Change the limits of a running container."""
        with _explained():
            self.api.update_container(container, **limits)

    def remove(self, container: str) -> None:
        """Kill and remove a container, if it is still there."""
        with contextlib.suppress(DockerException, OSError):
            self.api.remove_container(container, force=True, v=True)

    def exit_code(self, container: str) -> int | None:
        """Wait for the end of a container; None if it was removed."""
        try:
            return int(self.api.wait(container, timeout=SECONDS)['StatusCode'])
        except (DockerException, OSError):
            return None

    def remove_abandoned(self) -> None:
        """Remove the containers of processes that are dead."""
        with _explained():
            found = self.api.containers(all=True, filters={'label': OWNER})
        for container in found:
            if owner_state(container['Labels'][OWNER]) == 'dead':
                self.remove(container['Id'])

    # Images -----------------------------------------------------------------------------------------------------------

    def with_guest(self, image: str) -> str:
        """An image like this one that has the guest, compiled by its own Python. Made once per image."""
        try:
            base = self.api.inspect_image(image)['Id']
        except ImageNotFound as error:
            msg = f'there is no image {image!r} on this machine: docker pull {image}'
            raise BackendNotFound(msg) from error
        except DockerException as error:
            raise SandboxError(_first_line(error)) from error
        tag = f'{base.rpartition(":")[2][:12]}-{guest_folder(FIRST_PROCESS).name}'
        name = f'habilis-sandbox:{tag}'
        with contextlib.suppress(ImageNotFound):
            if PYTHON in (self.api.inspect_image(name)['Config']['Labels'] or {}):
                return name
        self._prepare(image, tag)
        return name

    def python_of(self, name: str) -> PythonTarget:
        """The Python of an image with the guest, for which packages are installed."""
        with _explained():
            label = self.api.inspect_image(name)['Config']['Labels'][PYTHON]
        version, machine, libc = label.split()
        if libc == 'musl':
            return PythonTarget(version=version, platforms=tuple(f'musllinux_1_{n}_{machine}' for n in (2, 1)))
        newest = int(libc.split('.')[1])
        tags = [f'manylinux_2_{minor}_{machine}' for minor in range(newest, OLDEST_GLIBC - 1, -1)]
        return PythonTarget(version=version, platforms=(*tags, f'manylinux2014_{machine}'))

    def _prepare(self, image: str, tag: str) -> None:
        code = _PREPARE.format(oldest=OLDEST, inside=INSIDE)
        container = self.create(image, ['python3', '-c', code], host={}, user='0:0')
        try:
            self.api.put_archive(container, '/', _guest_archive())
            try:
                self.start(container)
            except SandboxError as error:
                msg = f'the image {image!r} cannot be used: it has no python3 ({error})'
                raise SandboxError(msg) from error
            failed = self.exit_code(container) != 0
            said = self.api.logs(container, tail=5).decode(errors='replace').strip().splitlines()
            if failed or not said:
                msg = f'the image {image!r} cannot be used: {said[-1] if said else "its python3 failed"}'
                raise SandboxError(msg)
            labels = f'LABEL {GUEST_OF}="{image}" {PYTHON}="{said[-1]}"'
            self.api.commit(container, 'habilis-sandbox', tag, changes=labels)
        finally:
            self.remove(container)
        self._remove_older(image, tag)

    def _remove_older(self, image: str, tag: str) -> None:
        for other in self.api.images(filters={'label': f'{GUEST_OF}={image}'}):
            if other['Created'] > time.time() - KEEP_SECONDS:  # another version of Habilis may use it
                continue
            for name in other['RepoTags'] or ():
                if name != f'habilis-sandbox:{tag}':
                    with contextlib.suppress(DockerException):  # in use
                        self.api.remove_image(name)

    # Streams ----------------------------------------------------------------------------------------------------------

    def attach(self, container: str) -> tuple[Any, Callable[[], None]]:
        """A socket for stdin and the multiplexed output of a container, and a function that closes it."""
        wanted = {'stdin': 1, 'stdout': 1, 'stderr': 1, 'stream': 1}
        with _explained():
            stream = self.api.attach_socket(container, params=wanted)
        return getattr(stream, '_sock', stream), partial(_close_stream, stream)


def _close_stream(stream: Any) -> None:
    response = getattr(stream, '_response', None)  # the SDK keeps it there, and it owns the socket
    with contextlib.suppress(OSError):
        (response or stream).close()


def _guest_archive() -> bytes:
    """The guest and the first process, to be unpacked at the root of a container."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode='w') as archive:
        archive.add(guest_folder(FIRST_PROCESS), INSIDE, filter=_of_root)
    return data.getvalue()


def _of_root(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if entry.name.endswith('/__pycache__'):  # of the host's Python
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ''
    entry.mode = 0o755 if entry.isdir() else 0o644
    return entry


@contextlib.contextmanager
def _explained() -> Generator[None]:
    """Raise the errors of the engine as `SandboxError`."""
    try:
        yield
    except NotFound as error:
        msg = f'the container or its image is gone: {_first_line(error)}; create a new sandbox'
        raise SandboxError(msg) from error
    except (DockerException, OSError) as error:
        msg = f'the Docker engine refused: {_first_line(error)}'
        raise SandboxError(msg) from error


def _first_line(error: Exception) -> str:
    text = error.explanation if isinstance(error, APIError) and error.explanation else error
    return str(text).strip().partition('\n')[0]


def _no_engine(error: Exception) -> str:
    if 'PermissionError' in str(error) or 'ermission denied' in str(error):
        return (
            'this user may not use the Docker engine: add it to the group docker '
            '(sudo usermod -aG docker $USER, then log in again), or use rootless Docker'
        )
    reason = f'{_first_line(error):.200}'
    return f'no Docker engine answers ({reason}): start it (sudo systemctl start docker), or set DOCKER_HOST'
