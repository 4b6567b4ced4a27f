"""Programs of others use the server: the inspector's command line, and the official conformance suite."""

import json
import re
import subprocess
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from habilis.core.limits import Limits
from habilis.journal import MemoryStore
from habilis.server.mcp.http import http_app
from habilis.server.mcp.protocol import McpService
from habilis.server.mcp.settings import McpSettings
from habilis.server.serve import listen, make_server
from habilis.server.settings import ServiceSettings
from tests.requirements import missing, require_node
from tests.server.mcp import conformance_program
from tests.server.running import serving

SETTINGS = McpSettings(
    service=ServiceSettings(port=0, backend='auto'),
    sandbox={'limits': Limits(seconds=150, memory_mb=512)},  # matplotlib builds its font cache
    open_journal=MemoryStore,
)
SCENARIOS = [
    'server-initialize',
    'ping',
    'tools-list',
    'tools-call-simple-text',
    'tools-call-error',
    'server-sse-multiple-streams',
    'resources-list',
    'dns-rebinding-protection',
]
"""The others are about what this server does not offer (prompts, completion, logging, subscriptions to resources,
sampling, elicitation), or call tools and read resources of the suite's own example server."""


def serve(settings: McpSettings) -> Any:
    """A server for the programs."""
    apps = [conformance_program.simple_text, conformance_program.error_handling]
    server = McpService(settings, apps)
    return serving(make_server(http_app(server, settings), settings.service), listen(settings.service))


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    """A server whose flows have a journal of their own."""
    monkeypatch.setenv('HABILIS_JOURNAL', str(tmp_path / 'runs.db'))
    with serve(SETTINGS) as found:
        yield f'{found}/mcp'


def inspect(address: str, code: str, session: str) -> list[dict[str, Any]]:
    """What the inspector gets from the tool `python`; each call is a connection of its own."""
    method = ['--method', 'tools/call', '--tool-name', 'python']
    arguments = ['--tool-arg', f'code={code}', '--tool-arg', f'session={session}']
    command = [*require_node('mcp-inspector'), '--cli', address, '--transport', 'http', *method, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)['content']


@pytest.mark.slow
def test_the_inspector_uses_python_with_its_variables(address: str) -> None:
    [first] = inspect(address, 'x = 41', 'new')
    session = first['text'].partition('session: ')[2]
    assert inspect(address, 'x + 1', session)[0]['text'].startswith('Value:\n42')


@pytest.mark.slow
def test_the_inspector_gets_a_plot_as_an_image() -> None:
    require_node('mcp-inspector')
    packages = {**SETTINGS.sandbox, 'packages': ['numpy', 'pandas', 'matplotlib']}
    with serve(replace(SETTINGS, sandbox=packages)) as found:
        content = inspect(f'{found}/mcp', 'import matplotlib.pyplot as plt; line = plt.plot([1, 3, 2])', 'new')
    if 'no network' in content[0]['text']:
        missing('registry')
    assert [(part['mimeType'], part['data'][:8]) for part in content[1:]] == [('image/png', 'iVBORw0K')]


@pytest.mark.slow
def test_the_conformance_suite_passes_where_it_applies(address: str) -> None:
    for scenario in SCENARIOS:
        command = [*require_node('conformance'), 'server', '--url', address, '--scenario', scenario]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert re.search(r'[1-9]\d*/\d+, 0 failed|[1-9]\d* passed, 0 failed', done.stdout + done.stderr), done.stdout
