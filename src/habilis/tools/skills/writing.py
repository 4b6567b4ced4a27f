"""Writes skills to the disk, as strict readers want them."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from habilis.core.errors import SkillError
from habilis.tools.skills.skill import PAGE, Skill, check_files


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files by their paths into a folder. Raises `OSError`, and `SkillError` for a path that leads out of it."""
    check_files(files)
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def write_skill(skill: Skill, parent: Path) -> Path:
    """Write a skill into a new folder of its name inside `parent`; it appears whole or not at all.

    Raises `SkillError`.
    """
    target = parent / skill.name
    if target.exists():
        msg = f'{target} exists already; delete it, or choose another folder'
        raise SkillError(msg)
    try:
        parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix='.skill-', dir=parent))
        work.chmod(0o755)
        try:
            write_files(work, {**skill.files, PAGE: skill.page().encode()})
            work.rename(target)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
    except OSError as error:
        msg = f'cannot write {target}: {error.strerror}'
        raise SkillError(msg) from error
    return target
