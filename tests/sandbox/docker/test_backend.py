"""What is particular to containers: the image, the warm ones, the output of processes, what is left behind."""

import io
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import docker.errors
import pytest

from habilis.core.errors import BackendNotFound, SandboxError
from habilis.core.limits import Limits
from habilis.sandbox.docker import engine as engine_module
from habilis.sandbox.docker.backend import DockerBackend
from habilis.sandbox.docker.engine import DockerEngine
from habilis.sandbox.session import Sandbox
from tests.sandbox.docker.engine import BACKEND, test_image
from tests.sandbox.docker.engine import docker as run_docker

STARTED = """
import sys
from habilis.sandbox import Sandbox
with Sandbox.create_sync('docker', image=sys.argv[1]) as sandbox:
    name = sandbox.run('import socket; socket.gethostname()').value
    print(name, flush=True)
    sandbox.run('while True: pass')
"""


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.1)


async def test_output_of_other_processes_is_output_of_the_cell() -> None:
    async with await Sandbox.create(BACKEND, limits=Limits(seconds=10)) as sandbox:
        for _ in range(5):
            cell = await sandbox.run("import os; os.system('echo from a shell; echo error >&2')")
            assert cell.stdout == 'from a shell\nerror\n'


async def test_threads_may_print_also_after_their_cell() -> None:
    async with await Sandbox.create(BACKEND, limits=Limits(seconds=10)) as sandbox:
        cell = await sandbox.run(
            'from concurrent.futures import ThreadPoolExecutor\n'
            'with ThreadPoolExecutor(8) as pool: list(pool.map(lambda n: print(n), range(100)))'
        )
        assert sorted(map(int, cell.stdout.split())) == list(range(100))
        late = 'threading.Thread(target=lambda: (go.wait(), print("late"))).start()'
        assert (await sandbox.run(f'import threading\ngo = threading.Event()\n{late}')).ok
        assert (await sandbox.run('go.set()')).ok
        heard = ''.join([(await sandbox.run('import time; time.sleep(0.1); 1')).stdout for _ in range(3)])
        assert heard in ('late\n', '')  # in the cell of `go.set()` otherwise
        assert (await sandbox.run('1 + 1')).value == 2


async def test_files_made_in_the_workspace_belong_to_the_user(tmp_path: Path) -> None:
    async with await Sandbox.create(BACKEND, workspace=tmp_path, limits=Limits(seconds=10)) as sandbox:
        assert (await sandbox.run("open('made', 'w').write('x')")).ok
    assert (tmp_path / 'made').owner() == tmp_path.owner()


async def test_a_warm_container_gets_the_limits_of_its_sandbox() -> None:
    for memory in (64, 512):
        async with await Sandbox.create(BACKEND, limits=Limits(seconds=20, memory_mb=memory)) as sandbox:
            cell = await sandbox.run('held = bytearray(200 << 20)')
            assert cell.ok == (memory == 512), cell.error


def test_a_killed_host_leaves_no_running_container_and_the_next_one_removes_the_rest() -> None:
    process = subprocess.Popen([sys.executable, '-c', STARTED, test_image()], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    name = process.stdout.readline().strip()
    assert run_docker('ps', '-q', '--filter', 'label=habilis.owner', '--filter', f'id={name}')
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    wait_until(lambda: not run_docker('ps', '-q', '--filter', f'id={name}'), 'its container is running')
    DockerEngine().remove_abandoned()
    assert not run_docker('ps', '-aq', '--filter', f'id={name}')


def test_what_is_missing_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackendNotFound, match=r"no image 'nothing:1' on this machine: docker pull nothing:1$"):
        DockerEngine().with_guest('nothing:1')
    monkeypatch.setenv('DOCKER_HOST', 'tcp://127.0.0.1:9')
    with pytest.raises(BackendNotFound, match=r'no Docker engine answers .* start it'):
        Sandbox.create_sync('docker', image='other')

    def refuse(**_: object) -> None:
        raise docker.errors.DockerException("('Connection aborted.', PermissionError(13, 'Permission denied'))")

    monkeypatch.setattr(engine_module.docker, 'APIClient', refuse)
    with pytest.raises(BackendNotFound, match='add it to the group docker'):
        DockerEngine()


def test_an_image_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode='w') as archive:
        archive.addfile(tarfile.TarInfo('/file'))
    empty = ['docker', 'import', '-', 'habilis-test-empty']
    subprocess.run(empty, input=data.getvalue(), check=True, stdout=subprocess.DEVNULL)
    try:
        with pytest.raises(SandboxError, match=r'habilis-test-empty.* has no python3'):
            DockerEngine().with_guest('habilis-test-empty')
    finally:
        run_docker('image', 'rm', 'habilis-test-empty')
    monkeypatch.setattr(engine_module, 'OLDEST', (9, 9))
    with pytest.raises(SandboxError, match=r'cannot be used: it has Python 3\.\d+; use one with Python 9\.9 or later$'):
        DockerEngine()._prepare(test_image(), 'never')  # pyright: ignore[reportPrivateUsage]


def test_the_isolation_is_named() -> None:
    assert 'without network' in DockerBackend('some/image').isolation
