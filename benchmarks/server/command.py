"""`habilis serve` in a process of its own: until it answers, and its memory then."""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from habilis.core.errors import HabilisError


@dataclass(frozen=True, kw_only=True)
class Started:
    """A server that was started."""

    seconds: float
    processor_seconds: float
    rss: int | None
    """Resident memory in bytes after the first page was opened; None if the system is not Linux."""


def start_server() -> Started:
    """Start the command, ask it how it is, and stop it."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / 'replies.json'
        script.write_text(json.dumps(['Hello']))
        command = [sys.executable, '-m', 'habilis', 'serve', '--port', '0', '--model', f'scripted:{script}']
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, 'HABILIS_DATA': folder}, stderr=subprocess.PIPE, text=True
        )
        try:
            assert process.stderr is not None
            with process.stderr as output:
                line = next((line for line in output if 'http://' in line), '')
                if not line:
                    msg = 'habilis serve did not start'
                    raise HabilisError(msg)
                address = f'http://{line.partition("http://")[2].split()[0]}'
                urllib.request.urlopen(f'{address}/api/health', timeout=60).read()
                seconds, used = time.perf_counter() - started, _processor(process.pid)
                urllib.request.urlopen(f'{address}/api/status', timeout=60).read()  # opens the agent, as a page does
                return Started(seconds=seconds, processor_seconds=used, rss=_memory(process.pid))
        finally:
            process.kill()
            process.wait()


def _processor(process: int) -> float:
    try:
        fields = Path(f'/proc/{process}/stat').read_text().rpartition(')')[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def _memory(process: int) -> int | None:
    try:
        lines = Path(f'/proc/{process}/status').read_text().splitlines()
    except OSError:
        return None
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith('VmRSS'))
