"""A server that a test kills: `python -m tests.server.assistant.worker FOLDER` prints its address."""

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from habilis.models.contract import Message
from habilis.server.serve import listen
from habilis.server.settings import HttpSettings
from habilis.tools import tool
from tests.server.assistant.conftest import service

FOLDER = Path(sys.argv[-1])


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
    """Serve until killed."""
    settings = HttpSettings(port=0)
    server = service(FOLDER, reply, settings, tools=[note, wait])
    listening = listen(settings)
    print(f'http://127.0.0.1:{listening.getsockname()[1]}', flush=True)
    asyncio.run(server.serve([listening]))


if __name__ == '__main__':
    main()
