"""Times of `habilis chat` on a terminal: until it can be typed in, and until the first word of a reply is shown."""

import asyncio
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measurement import Sample, summarize
from habilis.agent import Agent
from habilis.agent.events import TextEvent
from habilis.core.errors import HabilisError
from habilis.models.scripted import ScriptedModel

PATIENCE = 120.0
_PROMPT = '>'


@dataclass(frozen=True, kw_only=True)
class ChatTimes:
    """Seconds."""

    ready: Sample
    """From the command to the prompt."""

    adds: Sample
    """First word of a reply on the screen, after that of the bare agent in this process."""


async def chat_times(folder: Path, rounds: int) -> ChatTimes:
    """Start the command that often. The first time is not counted: it compiles."""
    ready: list[float] = []
    adds: list[float] = []
    for number in range(rounds + 1):
        seconds, first = await asyncio.to_thread(_chat, folder)
        bare = await _bare()
        if number:
            ready.append(seconds)
            adds.append(first - bare)
    return ChatTimes(ready=summarize(ready), adds=summarize(adds))


def _chat(folder: Path) -> tuple[float, float]:
    folder.mkdir(exist_ok=True)
    script = folder / 'replies.json'
    script.write_text(json.dumps(['ready', 'pong']))
    started = time.perf_counter()
    with _terminal(folder, f'scripted:{script}') as terminal:
        _wait_for(terminal, _PROMPT)
        ready = time.perf_counter() - started
        os.write(terminal, b'hello\r')  # opens the sandbox
        _wait_for(terminal, 'ready')
        time.sleep(1.0)
        asked = time.perf_counter()
        os.write(terminal, b'hello\r')
        _wait_for(terminal, 'pong')
        return ready, time.perf_counter() - asked


@contextmanager
def _terminal(folder: Path, model: str) -> Generator[int]:
    import pty

    terminal, inside = pty.openpty()
    env = {
        **os.environ,
        'HABILIS_DATA': str(folder),
        'PROMPT_TOOLKIT_NO_CPR': '1',
        'TERM': 'xterm',
        'COLUMNS': '100',
    }
    command = [sys.executable, '-m', 'habilis', 'chat', '--no-workspace', '--model', model]
    process = subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside, env=env, start_new_session=True)
    os.close(inside)
    try:
        yield terminal
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def _wait_for(terminal: int, text: str) -> None:
    shown, end = '', time.monotonic() + PATIENCE
    while text not in shown:
        if not select.select([terminal], [], [], max(0.0, end - time.monotonic()))[0]:
            msg = f'the chat did not show {text!r} within {PATIENCE:.0f} s, but: {shown[-200:]!r}'
            raise HabilisError(msg)
        shown += os.read(terminal, 65536).decode(errors='replace')


async def _bare() -> float:
    """The same second turn without the chat: seconds to the first word."""
    async with Agent(ScriptedModel(['ready', 'pong']), journal='memory:') as agent, agent.conversation() as chat:
        await chat.run('hello')
        asked = time.perf_counter()
        async for event in chat.stream('hello'):
            if isinstance(event, TextEvent):
                return time.perf_counter() - asked
    msg = 'the agent said nothing'
    raise HabilisError(msg)
