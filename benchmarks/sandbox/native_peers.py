"""Other ways to run native Python, next to the backends `process` and `docker`. Measured if they are installed."""

import importlib
import subprocess
from typing import Any

from benchmarks.docker import find_bridge, find_docker
from benchmarks.installation import PeerError
from benchmarks.sandbox.peers import Library, Peer
from benchmarks.sandbox.timings import ANSWER, CODE

SECONDS = 60.0
NO_BRIDGE = 'the engine has no bridge network: docker network create habilis-bench'


class JupyterKernel(Library):
    """A Jupyter kernel, used through its client."""

    name = distribution = 'ipykernel'
    isolation = 'none: a process with the rights of the user'
    is_slow = True

    def start(self) -> None:
        self._manager: Any = importlib.import_module('jupyter_client.manager')

    def new(self) -> Any:
        session = self._manager.start_new_kernel(kernel_name='python3', stderr=subprocess.DEVNULL)
        self.later(session)
        return session

    def later(self, session: Any) -> None:
        found: list[str] = []

        def keep(message: dict[str, Any]) -> None:
            if message['msg_type'] == 'execute_result':
                found.append(message['content']['data']['text/plain'])

        _, client = session
        client.execute_interactive(CODE, output_hook=keep, timeout=SECONDS)
        check_text(''.join(found))

    def end(self, session: Any) -> None:
        manager, client = session
        client.stop_channels()
        manager.shutdown_kernel(now=True)


class SmolagentsDocker(Library):
    """The Docker executor of smolagents: a Jupyter gateway in a container, whose image it builds at the first use."""

    distribution = 'smolagents'
    name = 'smolagents DockerExecutor'
    isolation = 'container with network'
    is_slow = True

    def unavailable(self) -> str | None:
        reason = super().unavailable() or find_docker().problem or (None if find_bridge() else NO_BRIDGE)
        self.name = f'{self.name} DockerExecutor' if reason is None else SmolagentsDocker.name
        return reason

    def start(self) -> None:
        self._executor: Any = importlib.import_module('smolagents.remote_executors').DockerExecutor
        self._logger: Any = importlib.import_module('smolagents.monitoring').AgentLogger(level=-1)

    def new(self) -> Any:
        # It publishes a port: where the engine has no `bridge`, that needs another network of this kind.
        network = find_bridge()
        options = {} if network == 'bridge' else {'network': network}
        try:
            session = self._executor([], self._logger, build_new_image=False, container_run_kwargs=options)
        except Exception as error:  # of the engine, its registry or the container
            raise PeerError(str(error)) from error
        self.later(session)
        return session

    def later(self, session: Any) -> None:
        check_text(str(session(f'print({CODE})').logs).strip())

    def end(self, session: Any) -> None:
        session.cleanup()


def native_peers() -> dict[str, list[Peer]]:
    """The peers by the backend that they are compared with."""
    return {'process': [JupyterKernel()], 'docker': [SmolagentsDocker()]}


def check_text(answer: str) -> None:
    """Raise `PeerError` unless this is the answer."""
    if answer != str(ANSWER):
        msg = f'{CODE} returned {answer!r}'
        raise PeerError(msg)
