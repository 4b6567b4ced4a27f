"""The kernel in an ordinary process, for backends that reach it through a pipe.

    python -m habilis.sandbox.guest '{"memory_mb": 256, "places": {"/workspace": "/tmp/folder"}}'

One line in, one line out. A line is a JSON text; going out it has `q` (a question to the host) or `a` (the answer to a
request) before it. `places` says where this process finds what the host calls by another name.
"""

import json
import os
import sys
from typing import Any, TextIO

from habilis.sandbox.guest.kernel import Kernel


def main() -> None:
    """Serve requests until the pipe is closed."""
    settings: dict[str, Any] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    requests, replies = _own_the_pipes()
    _limit_memory(settings.get('memory_mb'))

    def send(message: str) -> str:
        replies.write(f'q{json.dumps(message)}\n')
        replies.flush()
        return str(json.loads(requests.readline()))

    kernel = Kernel(send, settings.get('places') or {})
    kernel.install()
    for line in requests:
        answer = kernel.enter(json.loads(line))
        replies.write(f'a{json.dumps(answer)}\n')
        replies.flush()


def _own_the_pipes() -> tuple[TextIO, TextIO]:
    """Keep the pipes for the kernel; what a cell writes to descriptor 1 by itself must not look like an answer."""
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
