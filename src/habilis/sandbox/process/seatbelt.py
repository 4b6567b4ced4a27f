"""The isolation of macOS: a seatbelt profile for `sandbox-exec`. Its text is tested; it has not been run on a Mac."""

import os
import sys
from collections.abc import Iterable, Mapping

PROGRAM = '/usr/bin/sandbox-exec'
DESCRIPTION = (
    'a process with a seatbelt profile: no network, no other processes, only granted files; memory is not limited '
    '(this profile has not been run on a Mac yet)'
)
_SYSTEM = (
    '/usr/lib',
    '/usr/share',
    '/System',
    '/Library/Frameworks',
    '/private/var/db/timezone',
    '/private/etc/localtime',
)
_DEVICES = ('/dev/null', '/dev/zero', '/dev/urandom', '/dev/random')
_SCRATCH = '/private/tmp'
_ENV = '/usr/bin/env'


def is_usable() -> bool:
    """Whether this is a Mac with `sandbox-exec`."""
    return sys.platform == 'darwin' and os.access(PROGRAM, os.X_OK)


def command(profile: str, environment: Mapping[str, str]) -> list[str]:
    """The beginning of a command line that runs the rest in the sandbox, with no other environment."""
    return [PROGRAM, '-p', profile, _ENV, '-i', *(f'{name}={value}' for name, value in environment.items())]


def make_profile(program: str, readable: Iterable[str], writable: Iterable[str]) -> str:
    """The profile: everything is denied but what is named. In such a profile the last rule that fits decides."""
    folders = [os.path.realpath(path) for path in writable]
    read = [*_SYSTEM, _SCRATCH, *map(os.path.realpath, readable), *folders]
    return '\n'.join(
        [
            '(version 1)',
            '(deny default)',
            '(deny network*)',
            '(deny process-fork)',
            f'(allow process-exec {_paths("literal", [_ENV, program])})',
            '(allow signal (target self))',
            '(allow sysctl-read)',
            '(allow file-read-metadata)',
            f'(allow file-read* {_paths("literal", ["/", _ENV, program, *_DEVICES])})',
            f'(allow file-read* {_paths("subpath", read)})',
            f'(allow file-map-executable {_paths("subpath", read)})',
            f'(allow file-write* {_paths("literal", _DEVICES)})',
            f'(allow file-write* {_paths("subpath", [_SCRATCH, *folders])})',
        ]
    )


def _paths(kind: str, paths: Iterable[str]) -> str:
    return ' '.join(f'({kind} {_quoted(path)})' for path in dict.fromkeys(paths))


def _quoted(path: str) -> str:
    if not path.isprintable():
        msg = f'cannot grant {path!r} on a Mac: its name has a control character'
        raise ValueError(msg)
    escaped = path.replace('\\', '\\\\').replace('"', '\\"')
    return f'"{escaped}"'
