"""The official conformance suite plays the server, and our client uses it."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements import require_node

ROOT = Path(__file__).parents[3]
SCENARIOS = [
    'initialize',
    'tools_call',
    'elicitation-sep1034-client-defaults',
    'sse-retry',
    'auth/metadata-default',
    'auth/metadata-var1',
    'auth/metadata-var2',
    'auth/metadata-var3',
    'auth/basic-cimd',
    'auth/scope-from-www-authenticate',
    'auth/scope-from-scopes-supported',
    'auth/scope-omitted-when-undefined',
    'auth/scope-step-up',
    'auth/scope-retry-limit',
    'auth/token-endpoint-auth-basic',
    'auth/token-endpoint-auth-post',
    'auth/token-endpoint-auth-none',
    'auth/pre-registration',
    'auth/2025-03-26-oauth-endpoint-fallback',
    'auth/resource-mismatch',
    'auth/offline-access-scope',
    'auth/offline-access-not-supported',
]
LEFT_OUT = {
    'auth/2025-03-26-oauth-metadata-backcompat': 'the SDK refuses metadata of an issuer that is not the address asked',
    'auth/client-credentials-jwt': 'an extension: a program without a user, which passes its own `auth`',
    'auth/client-credentials-basic': 'the same',
    'auth/cross-app-access-complete-flow': 'an extension: tokens of the provider of a company',
}
"""The other scenarios of the suite, with the reason."""


def suite(*words: str) -> subprocess.CompletedProcess[str]:
    command = [*require_node('conformance'), *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize('scenario', SCENARIOS)
def test_our_client_passes(scenario: str, tmp_path: Path) -> None:
    client = shlex.join([sys.executable, '-m', 'tests.tools.mcp.conformance_client'])
    done = suite('client', '--command', client, '--scenario', scenario, '-o', str(tmp_path), '--timeout', '300000')
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_every_scenario_is_run_or_left_out_with_a_reason() -> None:
    listed = suite('list').stdout.partition('Client scenarios')[2].splitlines()
    names = {line.split()[1] for line in listed if line.startswith('  - ')}
    assert names == {*SCENARIOS, *LEFT_OUT}
