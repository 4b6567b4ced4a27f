"""Find a running Docker engine and a local Python image."""

from dataclasses import dataclass

from habilis.sandbox.docker.command import find_engine, run_docker

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
    version, problem = find_engine()
    if not version:
        return Docker(problem=problem)
    listing, _ = run_docker('image', 'ls', '--format', '{{.Repository}}:{{.Tag}}')
    images = [line for line in listing.splitlines() if line.rpartition('/')[2].startswith('python:')]
    if not images:
        return Docker(version=version, problem=f'no local image with Python: {PULL_IMAGE}')
    return Docker(version=version, image=images[0])


def find_bridge() -> str:
    """A network whose containers can publish ports: `bridge`, if the engine has it; empty if there is none."""
    listing, _ = run_docker('network', 'ls', '--filter', 'driver=bridge', '--format', '{{.Name}}')
    found = listing.split()
    return 'bridge' if 'bridge' in found else next(iter(found), '')
