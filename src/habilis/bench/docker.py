"""Whether there is a Docker engine to measure, and why not if there is none."""

import shutil
import subprocess
from dataclasses import dataclass

PATIENCE = 10.0
"""Seconds an engine has to answer; one that hangs is as good as none."""

GET_AN_IMAGE = 'docker pull python:3.14-slim'


@dataclass(frozen=True, kw_only=True)
class Docker:
    """What was found."""

    version: str = ''
    image: str = ''
    """A local image with Python; nothing is pulled."""

    problem: str = ''
    """Why it cannot be measured."""

    @property
    def answers(self) -> bool:
        """Whether an engine runs."""
        return bool(self.version)


def find_docker() -> Docker:
    """Ask the engine for its version and its images."""
    if shutil.which('docker') is None:
        return Docker(problem='the `docker` command is not installed')
    version, complaint = _ask('version', '--format', '{{.Server.Version}}')
    if not version:
        return Docker(problem=f'the `docker` command is here, but no engine answers ({complaint})')
    listing, _ = _ask('image', 'ls', '--format', '{{.Repository}}:{{.Tag}}')
    images = [line for line in listing.splitlines() if line.rpartition('/')[2].startswith('python:')]
    if not images:
        return Docker(version=version, problem=f'no image with Python is here: {GET_AN_IMAGE}')
    return Docker(version=version, image=images[0])


def _ask(*arguments: str) -> tuple[str, str]:
    """What the command says, and what it complains about."""
    try:
        done = subprocess.run(['docker', *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return '', f'nothing for {PATIENCE:g} s'
    except OSError as error:
        return '', str(error.strerror)
    complaint = done.stderr.strip().splitlines()[:1] or ['no reason given']
    return (done.stdout.strip() if done.returncode == 0 else ''), complaint[0]
