"""A server that a test kills: `python -m tests.server.assistant.worker FOLDER [PORT]` prints its address."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from habilis.models.contract import Message
from habilis.server.serve import listen
from habilis.server.settings import HttpSettings
from habilis.tools import tool
from tests.server.assistant.conftest import service

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else '.')


@tool(idempotent=False)
def note() -> str:
    """Note it."""
    with (FOLDER / 'calls').open('a') as file:
        file.write('once\n')
    return 'noted'


@tool
def wait() -> str:
    """Wait for the file `go`, as a long call does."""
    while not (FOLDER / 'go').exists():
        time.sleep(0.05)
    return 'went'


REPLIES = [
    '```python\nx = note()\n```',
    '```python\ny = wait()\n```',
    '```python\nfinal_answer((x, y))\n```',
]


def reply(messages: Sequence[Message]) -> str:
    """The reply to a conversation, also in a second process."""
    return REPLIES[sum(message.role == 'assistant' for message in messages)]


def main() -> None:
    """Serve until killed; at the port of a server that was killed, if it is given."""
    settings = HttpSettings(port=int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    server = service(FOLDER, reply, settings, tools=[note, wait])
    listening = listen(settings)
    print(f'http://127.0.0.1:{listening.getsockname()[1]}', flush=True)
    asyncio.run(server.serve([listening]))


def start(folder: Path, port: int = 0) -> tuple[subprocess.Popen[str], str]:
    """A server in a process of its own, and its address."""
    command = [sys.executable, '-m', 'tests.server.assistant.worker', str(folder), str(port)]
    environment = {**os.environ, 'PYTHONPATH': os.getcwd()}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    with process.stdout as output:
        return process, output.readline().strip()


if __name__ == '__main__':
    main()
