"""Runs the kernel in a process, for backends that talk to it through pipes.

    python -m habilis.sandbox.guest '{"memory_mb": 256, "places": {"/workspace": "/tmp/folder"}}'

Messages are lines of JSON text. Lines to the host start with `q` (a message of the kernel) or `a` (the answer to a
request). `places` maps paths inside the sandbox to paths of this process. `mark` is written to stderr before each
answer, for hosts that read both: what came before it belongs to the request.
"""

import json
import os
import sys
import threading
from typing import Any, TextIO

from habilis.sandbox.guest.kernel import Kernel


def main() -> None:
    """Handle requests until the pipe is closed."""
    settings: dict[str, Any] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    requests, replies = _take_pipes()
    mark, errors = settings.get('mark', '').encode(), os.dup(2)
    _limit_memory(settings.get('memory_mb'))

    channel = threading.Lock()  # a thread that a cell has left waits with its messages for the next request

    def send(message: str) -> str:
        with channel:
            replies.write(f'q{json.dumps(message)}\n')
            replies.flush()
            return str(json.loads(requests.readline()))

    kernel = Kernel(send, settings.get('places') or {})
    kernel.install()
    channel.acquire()
    for line in requests:
        channel.release()
        answer = kernel.enter(json.loads(line))
        channel.acquire()
        if mark:
            os.write(errors, mark)
        replies.write(f'a{json.dumps(answer)}\n')
        replies.flush()


def _take_pipes() -> tuple[TextIO, TextIO]:
    """Move the pipes to other descriptors: output of a cell to descriptor 1 must not be taken for an answer."""
    requests, replies = os.fdopen(os.dup(0), encoding='utf-8'), os.fdopen(os.dup(1), 'w', encoding='utf-8')
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return requests, replies


def _limit_memory(megabytes: int | None) -> None:
    if megabytes is not None and sys.platform != 'win32':
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


if __name__ == '__main__':
    main()
