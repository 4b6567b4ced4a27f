"""Runs the kernel in a process, for backends that talk to it through pipes.

    python -m habilis.sandbox.guest '{"memory_mb": 256, "places": {"/workspace": "/tmp/folder"}}'

Messages are lines of JSON text. Lines to the host start with `q` (a message of the kernel) or `a` (the answer to a
request). `places` maps paths inside the sandbox to paths of this process; `stdout` is a descriptor for output that
bypasses the kernel, which goes to stderr without it.
"""

import json
import os
import sys
from typing import Any, TextIO

from habilis.sandbox.guest.children import detach_after_fork
from habilis.sandbox.guest.kernel import Kernel


def main(settings: dict[str, Any]) -> None:
    """Handle requests until the pipe is closed."""
    requests, replies = _take_pipes(settings.get('stdout', 2))
    _limit_memory(settings.get('memory_mb'))

    def send(message: str) -> str:
        replies.write(f'q{json.dumps(message)}\n')
        replies.flush()
        return str(json.loads(requests.readline()))

    kernel = Kernel(send, settings.get('places') or {})
    end_if_child = detach_after_fork(kernel)
    kernel.install()
    for line in requests:
        try:
            answer = kernel.enter(json.loads(line))
        finally:
            end_if_child()
        replies.write(f'a{json.dumps(answer)}\n')
        replies.flush()


def _take_pipes(stdout: int) -> tuple[TextIO, TextIO]:
    """Move the pipes to other descriptors: output of a cell to descriptor 1 must not be taken for an answer."""
    requests, replies = os.fdopen(os.dup(0), encoding='utf-8'), os.fdopen(os.dup(1), 'w', encoding='utf-8')
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(stdout, 1)
    if stdout > 2:
        os.close(stdout)
    return requests, replies


def _limit_memory(megabytes: int | None) -> None:
    if megabytes is not None and sys.platform != 'win32':
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


if __name__ == '__main__':
    main(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})
