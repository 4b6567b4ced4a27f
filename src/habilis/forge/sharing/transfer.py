"""Exports tools to one file, and imports them elsewhere: verified there, and never trusted by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from habilis.core.errors import ForgeError, ToolDefinitionError, ToolExists
from habilis.core.regular_files import read_regular
from habilis.forge.checks.verification import passes_when_wrong, verify_all
from habilis.forge.contract import FORMAT, SOURCE_FILES, Candidate, Manifest
from habilis.forge.library.library import MANIFEST, Library
from habilis.forge.library.packages import check_packages
from habilis.forge.sharing.archives import Archive, read_archive, texts, write_archive
from habilis.forge.sharing.signatures import NoSshKeygen, check_signature, public_keys, sign
from habilis.forge.source import read_source

_MANIFEST = TypeAdapter(Manifest)
_MAX_TEXT = 2000
_MAX_TAGS = 20


@dataclass(frozen=True, kw_only=True)
class ImportReport:
    """What an import has done."""

    added: tuple[Manifest, ...] = ()
    skipped: tuple[str, ...] = ()
    """Tools that the library has already, with the same code and tests."""

    is_signed: bool = False
    signer: str = ''
    """Fingerprint of the key that has signed the file; empty if `ssh-keygen` is missing, which checks signatures."""


def export_tools(library: Library, names: Sequence[str], path: Path, *, key: Path | None = None) -> list[str]:
    """Write the current versions of tools, with all that they use, to one file; returns the names in it.

    `key` is the file of an SSH key to sign it with.
    """
    tools = collect(library, names)
    write_archive(tools, path, None if key is None else partial(sign, key=key))
    return list(tools)


def collect(library: Library, names: Sequence[str]) -> dict[str, dict[str, bytes]]:
    """The files of the current versions of tools, with all that they use. Raises `ForgeError`."""
    chosen: dict[str, int] = {}

    def add(name: str, version: int) -> None:
        if chosen.setdefault(name, version) != version:
            msg = f'two versions of {name} are used, {chosen[name]} and {version}: export these tools to two files'
            raise ForgeError(msg)
        for used, number in library.manifest(name, version).uses.items():
            add(used, number)

    for name in names:
        library.candidate(name)  # refuses cycles, and says what is missing
        add(name, library.current(name))
    if edited := [name for name, version in chosen.items() if library.is_edited(name, version)]:
        msg = f'{edited[0]} was edited by hand: run `habilis tools doctor --fix`, which tests the edits first'
        raise ForgeError(msg)
    return {name: _files(library, name, version) for name, version in chosen.items()}


def _files(library: Library, name: str, version: int) -> dict[str, bytes]:
    folder = library.folder / name / f'v{version}'
    files = (*SOURCE_FILES[library.manifest(name, version).language], MANIFEST)
    return {file: read_regular(folder / file) for file in files}


async def import_tools(library: Library, path: Path, *, trust: Path | None = None) -> ImportReport:
    """Add the tools of a file. All are tested in sandboxes first; if one is refused, none is added.

    With `trust`, a file of public SSH keys, the file must be signed by one of them. Raises `ForgeError`.
    """
    if trust is not None:
        public_keys(trust)  # a wrong file of keys is no fault of the tools
    try:
        archive = read_archive(path)
        signer = _signer(path, archive, trust)
        tools = _in_order(path, archive.tools)
    except ToolDefinitionError as error:
        msg = f'{path} is refused: {error}'
        raise ForgeError(msg) from error
    skipped = [name for name, (candidate, _) in tools.items() if _is_present(library, candidate)]
    new = {name: both for name, both in tools.items() if name not in skipped}
    candidates = [candidate for candidate, _ in new.values()]
    results = dict(zip(new, await verify_all(candidates), strict=True))
    for name, result in results.items():
        if not result.ok:
            msg = f'{path} is refused: the tests of {name} fail:\n{result.report}'
            raise ForgeError(msg)
    await _check_tests(path, candidates)
    added: list[Manifest] = []
    for name, (candidate, known) in new.items():
        note = f'imported from {path.name}' + (f', made by {known.origin[:100]}' if known.origin else '')
        note += f', signed by {signer}' if signer else ''
        tags, request = tuple(tag[:100] for tag in known.tags[:_MAX_TAGS]), known.request[:_MAX_TEXT]
        tests = len(results[name].tests)
        try:
            made = library.add(candidate, origin='import', note=note, tests=tests, tags=tags, request=request)
        except ToolExists:
            if not _is_present(library, candidate):
                raise
            skipped.append(name)  # another process has just imported it
        else:
            added.append(made)
    return ImportReport(added=tuple(added), skipped=tuple(skipped), is_signed=bool(archive.signature), signer=signer)


def _signer(path: Path, archive: Archive, trust: Path | None) -> str:
    if not archive.signature:
        if trust is not None:
            msg = f'{path} is refused: it is not signed; to import it all the same, leave out --trust'
            raise ForgeError(msg)
        return ''
    try:
        return check_signature(archive.index, archive.signature, trust)
    except NoSshKeygen:
        if trust is not None:
            raise
        return ''
    except ForgeError as error:
        msg = f'{path} is refused: {error}'
        raise ForgeError(msg) from error


async def _check_tests(path: Path, candidates: Sequence[Candidate]) -> None:
    for candidate in candidates:
        if wrong := await passes_when_wrong(candidate):
            msg = f'{path} is refused: the tests of {candidate.name} pass on a function that {wrong}'
            raise ForgeError(msg)


def _in_order(path: Path, files: Mapping[str, Mapping[str, bytes]]) -> dict[str, tuple[Candidate, Manifest]]:
    """The tools of a file, each after those that it uses."""
    made: dict[str, tuple[Candidate, Manifest]] = {}

    def add(name: str, inside: tuple[str, ...]) -> Candidate:
        if name in inside:
            msg = f'{path} is refused: {name} uses itself'
            raise ForgeError(msg)
        if name not in files:
            msg = f'{path} is refused: {inside[-1]} uses {name}, which is not in it'
            raise ForgeError(msg)
        if name not in made:
            known = _read_manifest(path, name, files[name])
            code, tests = texts(path, files[name], SOURCE_FILES[known.language])
            uses = {used: add(used, (*inside, name)) for used in read_source(name, code, known.language).uses}
            candidate = Candidate(
                name=name, code=code, tests=tests, packages=known.packages, uses=uses, language=known.language
            )
            made[name] = candidate, known
        return made[name][0]

    for name in files:
        add(name, ())
    return made


def _read_manifest(path: Path, name: str, files: Mapping[str, bytes]) -> Manifest:
    try:
        known = _MANIFEST.validate_json(files[MANIFEST])
    except ValidationError as error:
        msg = f'{path} is refused: the manifest of {name} is damaged: {str(error).splitlines()[0]}'
        raise ForgeError(msg) from error
    if known.name != name or known.format > FORMAT:
        msg = f'{path} is refused: the manifest of {name} is of {known.name[:100]!r}, format {known.format}'
        raise ForgeError(msg)
    if not {*SOURCE_FILES[known.language]} <= files.keys():
        msg = f'{path} is refused: the manifest of {name} says {known.language}, which its files are not'
        raise ForgeError(msg)
    check_packages(name, known.packages)
    return known


def _is_present(library: Library, candidate: Candidate) -> bool:
    """Whether the library has this very tool. Raises `ToolExists` if it has another one of this name."""
    if candidate.name not in library:
        return False
    present = library.candidate(candidate.name)
    if replace(present, uses={}) == replace(candidate, uses={}):
        return True
    msg = (
        f'the library has another tool {candidate.name!r}; compare them, then delete yours or use it: '
        f'habilis tools show {candidate.name}'
    )
    raise ToolExists(msg)
