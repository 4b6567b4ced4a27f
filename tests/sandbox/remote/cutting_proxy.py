"""A proxy that cuts connections at random moments, in the middle of a frame too."""

import contextlib
import random
import socket
import threading
from collections.abc import Generator


class CuttingProxy:
    """Passes bytes on between clients and a server; each connection is cut after a random number of bytes."""

    def __init__(self, target: tuple[str, int], seed: int, most_bytes: int) -> None:
        self._target = target
        self._random = random.Random(seed)
        self._most_bytes = most_bytes
        self._listening = socket.create_server(('127.0.0.1', 0))
        self.port = self._listening.getsockname()[1]
        self.cuts = 0
        self.cutting = True
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._target)
                left = [self._random.randint(300, self._most_bytes)]
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=(source, sink, left), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, left: list[int]) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(4096):
                left[0] -= len(data)
                if self.cutting and left[0] < 0:
                    sink.sendall(data[: len(data) // 2])
                    self.cuts += 1
                    break
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        """Stop listening."""
        self._listening.close()


@contextlib.contextmanager
def cutting_proxy(port: int, *, seed: int, most_bytes: int = 3000) -> Generator[CuttingProxy]:
    """A proxy for a server on this machine."""
    proxy = CuttingProxy(('127.0.0.1', port), seed, most_bytes)
    try:
        yield proxy
    finally:
        proxy.close()
