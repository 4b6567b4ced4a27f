"""The profile for macOS, as text: what it would decide. Nothing here runs on a Mac."""

import re
import sys
from pathlib import Path

import pytest

from habilis.sandbox.process import levels, seatbelt
from habilis.sandbox.process.backend import ProcessBackend

PYTHON = '/opt/python/bin/python3.12'
PROFILE = seatbelt.make_profile(
    PYTHON, ['/opt/python', '/people/ann/Library/Caches/habilis/guests/1'], ['/people/ann/work']
)


def decides(operation: str, path: str = '', profile: str = PROFILE) -> str:
    """`allow` or `deny`: the last rule that fits, as seatbelt reads them."""
    decision = 'deny'
    for verdict, what, filters in re.findall(r'^\((allow|deny) ([\w*-]+)(.*)\)$', profile, re.MULTILINE):
        wanted = re.findall(r'\((literal|subpath) "((?:[^"\\]|\\.)*)"\)', filters)
        fits = what == 'default' or operation == what or (what.endswith('*') and operation.startswith(what[:-1]))
        inside = [path == name or (kind == 'subpath' and path.startswith(f'{name}/')) for kind, name in wanted]
        if fits and (not wanted or any(inside)):
            decision = verdict
    return decision


@pytest.mark.parametrize(
    ('operation', 'path', 'decision'),
    [
        ('network-outbound', '', 'deny'),
        ('network-bind', '', 'deny'),
        ('mach-lookup', '', 'deny'),
        ('process-fork', '', 'deny'),
        ('process-exec', '/bin/sh', 'deny'),
        ('process-exec', PYTHON, 'allow'),
        ('file-read-data', '/people/ann/.ssh/id_rsa', 'deny'),
        ('file-read-data', '/people/ann/Library/Caches/other', 'deny'),
        ('file-read-data', '/private/etc/passwd', 'deny'),
        ('file-read-data', '/opt/python/lib/os.py', 'allow'),
        ('file-read-data', '/people/ann/work/data.csv', 'allow'),
        ('file-read-data', '/people/ann/work-of-others/data.csv', 'deny'),
        ('file-write-create', '/people/ann/work/new.csv', 'allow'),
        ('file-write-create', '/private/tmp/x', 'allow'),
        ('file-write-create', '/people/ann/new', 'deny'),
        ('file-write-create', '/opt/python/lib/os.py', 'deny'),
        ('file-write-data', '/dev/null', 'allow'),
    ],
)
def test_the_profile_allows_what_is_granted_and_nothing_else(operation: str, path: str, decision: str) -> None:
    assert decides(operation, path) == decision


def test_a_path_cannot_add_rules() -> None:
    evil = '/people/ann/") (allow default) ("'
    profile = seatbelt.make_profile(PYTHON, [evil], [])
    assert profile.count('(allow default)') == 2  # within the two strings
    assert decides('network-outbound', profile=profile) == 'deny'
    assert profile.count('\\") (allow default) (\\"') == 2
    with pytest.raises(ValueError, match='control character'):
        seatbelt.make_profile(PYTHON, ['/people/ann/\n(allow default)'], [])


def test_a_mac_starts_guests_with_the_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, 'platform', 'darwin')
    monkeypatch.setattr(seatbelt, 'PROGRAM', '/bin/true')
    assert levels.find_level(allow_weak=False).description == seatbelt.DESCRIPTION
    backend = ProcessBackend()
    assert (backend.isolation, backend.has_processes) == (seatbelt.DESCRIPTION, False)
