"""Where skills come from: folders, zip files, packages, the user's own folder, and a folder that is shared."""

import importlib.metadata
import importlib.util
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from habilis.core.errors import SkillError, WorkspaceError
from habilis.core.folders import config_folder, real_path
from habilis.core.zip_entries import ZipLimits, read_zip
from habilis.sandbox.files.workspace import Workspace
from habilis.sandbox.options import PathLike
from habilis.tools.skills.skill import MAX_BYTES, MAX_FILES, PAGE, Skill, check_files, check_unique, make_skill

SkillSource = Skill | PathLike
"""A skill; the folder of one or of several; a zip file; the name of one of the user's, or of a package with skills."""

FOLDERS = ('.skills', '.agents/skills', '.claude/skills', '.habilis/skills')
"""Folders of a shared folder where agents look for skills."""

GROUP = 'habilis.skills'
"""The entry point group of packages with skills: a name, and the package whose folder has them."""

MAX_SKILLS = 200
"""Of one folder."""

_ZIP = ZipLimits(bytes=50_000_000, entry_bytes=MAX_BYTES, entries=5 * MAX_FILES)
_IGNORED = frozenset({'__pycache__', '__MACOSX', 'node_modules'})


@dataclass(frozen=True, kw_only=True)
class FoundSkills:
    """What a search has found."""

    skills: tuple[Skill, ...]
    refused: tuple[str, ...]
    """Why others cannot be used."""


def user_folder() -> Path:
    """The folder of the user's own skills."""
    return config_folder() / 'skills'


def load_skills(sources: Iterable[SkillSource]) -> tuple[Skill, ...]:
    """The skills of these sources. Raises `SkillError`."""
    skills = [skill for source in sources for skill in _load(source)]
    check_unique(skills)
    return tuple(skills)


def find_skills(workspace: PathLike | None = None) -> FoundSkills:
    """The skills of a shared folder, and those of the user. The first of a name counts; packages are not searched."""
    shared = None if workspace is None else real_path(workspace)
    places = [] if shared is None else [(shared / folder, shared) for folder in FOLDERS]
    skills, refused = dict[str, Skill](), list[str]()
    for place, within in [*places, (user_folder(), None)]:
        for folder in _skill_folders(place):
            try:
                if within is not None and not real_path(folder).is_relative_to(within):
                    msg = f'the skill {folder} is refused: it is a link out of the folder that is shared'
                    raise SkillError(msg)
                skill = _read_folder(folder)
            except SkillError as error:
                refused.append(str(error))
            else:
                skills.setdefault(skill.name, skill)
    return FoundSkills(skills=tuple(skills.values()), refused=tuple(refused))


def _load(source: SkillSource) -> Iterator[Skill]:
    if isinstance(source, Skill):
        yield source
        return
    path = Path(source).expanduser()
    if path.name.casefold() == PAGE.casefold() and path.is_file():
        path = path.parent
    if path.is_file():
        yield from _read_archive(path)
        return
    place = path if path.is_dir() else _named(source)
    if not (folders := _skill_folders(place)):
        msg = f'there is no skill in {place}: no {PAGE} in it, nor in a folder of it'
        raise SkillError(msg)
    yield from map(_read_folder, folders)


def _named(source: PathLike) -> Path:
    name = os.fspath(source)
    own = user_folder() / name
    if len(PurePosixPath(name).parts) == 1 and own.is_dir():
        return own
    for entry in importlib.metadata.entry_points(group=GROUP, name=name):
        spec = importlib.util.find_spec(entry.value)
        if spec is not None and spec.submodule_search_locations:
            return Path(spec.submodule_search_locations[0])
    msg = (
        f'no such skill: {name[:200]!r} is neither a folder, a zip file, one of `habilis skills list`, '
        'nor an installed package with skills'
    )
    raise SkillError(msg)


def _skill_folders(folder: Path) -> list[Path]:
    """The folder itself, if it is a skill, else the skills in it."""
    try:
        if _has_page(folder):
            return [folder]
        return [one for one in sorted(folder.iterdir()) if one.is_dir() and _has_page(one)][:MAX_SKILLS]
    except OSError:  # it is not there
        return []


def _has_page(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in (PAGE, PAGE.lower()))


def _read_folder(folder: Path) -> Skill:
    place = real_path(folder)
    try:
        files = _files_of(Workspace(place, read_only=True))
    except (WorkspaceError, SkillError) as error:
        msg = f'the skill {folder} is refused: {error}'
        raise SkillError(msg) from error
    return make_skill(files, folder=place.name, source=str(folder))


def _files_of(folder: Workspace) -> dict[str, bytes]:
    """The files of a folder. No link is followed, also if somebody replaces a file by one just now."""
    files, left, seen = dict[str, bytes](), MAX_BYTES, 0
    for path, info in folder.walk(skip=_is_ignored, limit=10 * MAX_FILES):
        seen += 1
        if _is_ignored(path) or stat.S_ISDIR(info.st_mode):
            continue
        if not stat.S_ISREG(info.st_mode):
            msg = f'{path!r} is a link or a device, and may lead out of its folder'
            raise SkillError(msg)
        files[path] = folder.read(path, limit=left)
        left -= len(files[path])
        if len(files) > MAX_FILES:
            break  # the check says so
    if seen >= 10 * MAX_FILES:
        msg = f'it has more than {10 * MAX_FILES} files'
        raise SkillError(msg)
    return files


def _is_ignored(path: str) -> bool:
    return any(part.startswith('.') or part in _IGNORED for part in PurePosixPath(path).parts)


def _read_archive(path: Path) -> Iterator[Skill]:
    def refuse(reason: str) -> SkillError:
        return SkillError(f'{path} is refused: {reason}')

    def check_name(name: str) -> None:
        try:
            check_files({name.rstrip('/'): b''})
        except SkillError as error:
            raise refuse(str(error)) from error

    try:
        entries = read_zip(path, _ZIP, refuse, check_name)
    except OSError as error:
        raise refuse(error.strerror or str(error)) from error
    found = {str(PurePosixPath(name).parent) for name in entries if PurePosixPath(name).name.casefold() == 'skill.md'}
    roots = sorted(root for root in found if not _is_ignored(root) or root == '.')
    if not roots or len(roots) > MAX_SKILLS:
        raise refuse(f'it has no {PAGE}' if not roots else f'it has more than {MAX_SKILLS} skills')
    for root in roots:
        name = path.stem if root == '.' else PurePosixPath(root).name
        yield make_skill(_below(entries, root), folder=name, source=f'{path}/{root}'.removesuffix('/.'))


def _below(entries: Mapping[str, bytes], root: str) -> dict[str, bytes]:
    prefix = '' if root == '.' else f'{root}/'
    inside = {name.removeprefix(prefix): data for name, data in entries.items() if name.startswith(prefix)}
    return {name: data for name, data in inside.items() if not _is_ignored(name)}
