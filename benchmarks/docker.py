"""Find a running Docker engine and a local Python image."""

import shutil
import subprocess
from dataclasses import dataclass

TIMEOUT_SECONDS = 10.0
PULL_IMAGE = 'docker pull python:3.14-slim'


@dataclass(frozen=True, kw_only=True)
class Docker:
    """The Docker engine of this machine."""

    version: str = ''
    image: str = ''
    """A local image with Python; images are never pulled."""

    problem: str = ''
    """Why it cannot be used."""


def find_docker() -> Docker:
    """Ask the engine for its version and its images."""
    version, problem = _find_engine()
    if not version:
        return Docker(problem=problem)
    listing, _ = _run_docker('image', 'ls', '--format', '{{.Repository}}:{{.Tag}}')
    images = [line for line in listing.splitlines() if line.rpartition('/')[2].startswith('python:')]
    if not images:
        return Docker(version=version, problem=f'no local image with Python: {PULL_IMAGE}')
    return Docker(version=version, image=images[0])


def find_bridge() -> str:
    """A network whose containers can publish ports: `bridge`, if the engine has it; empty if there is none."""
    listing, _ = _run_docker('network', 'ls', '--filter', 'driver=bridge', '--format', '{{.Name}}')
    found = listing.split()
    return 'bridge' if 'bridge' in found else next(iter(found), '')


def _find_engine() -> tuple[str, str]:
    """Version of the running engine; if there is none, an empty one and the reason."""
    if shutil.which('docker') is None:
        return '', 'the `docker` command is not installed'
    version, error = _run_docker('version', '--format', '{{.Server.Version}}')
    return version, '' if version else f'the `docker` command is installed, but no engine answers ({error})'


def _run_docker(*arguments: str) -> tuple[str, str]:
    """Output and error message of a docker command."""
    try:
        done = subprocess.run(
            ['docker', *arguments], capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return '', f'no answer in {TIMEOUT_SECONDS:g} s'
    except OSError as error:
        return '', str(error.strerror)
    error = done.stderr.strip().splitlines()[:1] or ['no error message']
    return (done.stdout.strip() if done.returncode == 0 else ''), error[0]
