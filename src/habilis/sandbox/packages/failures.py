"""Why pip could not install packages, from its verbose log: it lists every file of a package and why it was skipped."""

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

from habilis.core.errors import PackageError
from habilis.sandbox.contract import PythonTarget

NAMED_VERSIONS = 5
"""Maximum number of versions in a message."""

Kind = Literal['pure', 'python', 'native', 'source']
"""A file of a release: a wheel for the sandbox, a wheel for another Python, one with native code, or source."""

_MISSING = re.compile(
    r'Could not find a version that satisfies the requirement (.+?)(?: \(from (.+?)\))? \(from versions'
)
_HASH = re.compile(r'THESE PACKAGES DO NOT MATCH THE HASHES')
_REFUSED = re.compile(r'(?:Could not fetch URL \S+|HTTP error|too many) (\d{3})\b')
_UNREACHABLE = re.compile(
    r'NewConnectionError|NameResolutionError|ProxyError|SSLError|certificate verify failed|Temporary failure'
    r'|Connection refused|Connection reset|Connection aborted|timed out|Network is unreachable|IncompleteRead'
)
_FILES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ('pure', re.compile(r'Found link (?P<file>\S+)')),
    ('python', re.compile(r"Link requires a different Python \(\S+ not in: '(?P<needs>.*?)'\): (?P<file>\S+)")),
    ('native', re.compile(r"none of the wheel's tags \((?P<needs>.*?)\) are compatible.*?\): (?P<file>\S+)")),
    ('source', re.compile(r'No sources permitted for \S+: (?P<file>\S+)')),
)


@dataclass(frozen=True, kw_only=True)
class _File:
    version: Version
    kind: Kind
    needs: str = ''
    """The versions of Python it needs; empty for any."""


class NeedsNativeCode(PackageError):
    """A package has native code, which the sandbox cannot run."""


def explain(wanted: list[str], log: str, python: PythonTarget) -> PackageError:
    """What went wrong and what to do, from the log of `pip install -vv`."""
    everything = ', '.join(wanted)
    if _HASH.search(log):
        why = f'the hash of a file of {everything} does not match: it is damaged, or not the file that was meant'
        return PackageError(why)
    if found := _MISSING.search(log):
        return _explain_missing(found[1], found[2], log, python)
    if _UNREACHABLE.search(log):
        return PackageError(_unreachable(everything))
    lines = [line for line in log.splitlines() if line.startswith('ERROR')] or log.splitlines()[-3:]
    return PackageError(f'cannot get {everything}:\n' + '\n'.join(lines[:6]))


def _explain_missing(text: str, parent: str | None, log: str, python: PythonTarget) -> PackageError:
    """Why no file fits a requirement, which may be that of another package."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return PackageError(f'there is no package {text!r}')
    files = _files(requirement.name, log)
    if not files:
        return PackageError(_no_files(requirement, log))
    name, newest_first = requirement.name, sorted({file.version for file in files}, reverse=True)
    fitting = [version for version in newest_first if requirement.specifier.contains(version, prereleases=True)]
    needed = f' (needed by {parent})' if parent else ''
    if not fitting:
        known = ', '.join(map(str, _finals(newest_first)[:NAMED_VERSIONS]))
        why = f'there is no {name}{requirement.specifier}{needed}; the newest versions of {name} are {known}'
        return PackageError(why)
    version = _finals(fitting)[0]
    released = [file for file in files if file.version == version]
    reason = _reason(name, needed, version, released, python)
    pure = _finals(sorted((file.version for file in files if file.kind == 'pure'), reverse=True))
    return type(reason)(f'{reason}; the newest version that works here is {pure[0]}') if pure else reason


def native_advice(name: str) -> str:
    """What to do about a package that `wasm` cannot run."""
    return f"this needs native code: Agent(sandbox='process', packages=[{name!r}])"


def _reason(name: str, needed: str, version: Version, files: list[_File], python: PythonTarget) -> PackageError:
    """Why no file of a release can be installed. `needed` says by which package it is needed."""
    needs = [file.needs for file in files if file.kind == 'python']
    if needs:
        why = f'needs Python {needs[0]}, and the sandbox runs Python {python.version}'
        return PackageError(f'{name}{needed} {version} {why}')
    if any(file.kind == 'native' for file in files):
        if python.platforms:
            why = f'has no wheel for Python {python.version} on {python.platforms[0]}'
            return PackageError(f'{name}{needed} {version} {why}')
        only = f'{name}{needed} is not pure Python: version {version} has only native wheels, which cannot run here'
        return NeedsNativeCode(f'{only}; {native_advice(name)}')
    source = f'{name}{needed} {version} is published only as source'
    return PackageError(f'{source}; build a wheel of it (pip wheel) and give its path')


def _no_files(requirement: Requirement, log: str) -> str:
    statuses = {status for status in _REFUSED.findall(log) if status != '404'}
    if statuses:
        return f'the package registry answered HTTP {min(statuses)} for {requirement}; check its address and login'
    if _UNREACHABLE.search(log):
        return _unreachable(str(requirement))
    return f'there is no package called {requirement.name!r}'


def _unreachable(wanted: str) -> str:
    return f'no network to fetch {wanted}; give a wheel or a folder instead, or try again later'


def _files(name: str, log: str) -> list[_File]:
    """The files of a package that pip has seen."""
    canonical = re.sub(r'[-_.]+', '-', name).lower()
    found: list[_File] = []
    for kind, pattern in _FILES:
        for match in pattern.finditer(log):
            file = unquote(urlsplit(match['file']).path.rpartition('/')[2])
            try:
                parsed, version = (
                    parse_wheel_filename(file)[:2] if file.endswith('.whl') else parse_sdist_filename(file)
                )
            except (InvalidWheelFilename, InvalidSdistFilename):  # an old form, such as an egg
                continue
            if parsed == canonical:
                found.append(_file(kind, version, match.groupdict().get('needs') or ''))
    return found


def _file(kind: Kind, version: Version, needs: str) -> _File:
    """A wheel that does not fit is native, unless its tags say `none-any`: then it is for another Python."""
    if kind == 'native':
        tags = re.split(r'[,\s]+', needs)
        if all(tag.endswith('-none-any') for tag in tags):
            return _File(version=version, kind='python', needs=tags[0].partition('-')[0].removeprefix('py'))
    return _File(version=version, kind=kind, needs=needs)


def _finals(versions: list[Version]) -> list[Version]:
    """Without pre-releases, unless there is nothing else."""
    return [version for version in versions if not version.is_prerelease] or versions
