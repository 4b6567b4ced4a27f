"""The subcommands of `habilis skills`."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from habilis.cli.options import confirm_deletion
from habilis.cli.printing import Page, print_json, print_table
from habilis.cli.streams import say
from habilis.core.errors import SkillError
from habilis.tools.skills.skill import Skill, one_line, skill_name
from habilis.tools.skills.sources import find_skills, load_skills, user_folder
from habilis.tools.skills.writing import write_skill

BODY = """# {name}

Say here, step by step, what to do. This page is read when the skill is used; keep it short.

- Put scripts into `scripts/`: they run in a sandbox, with `python scripts/x.py ARGUMENT`.
- Put longer texts into `references/`, and name them here.
"""


def list_skills(workspace: str, *, as_json: bool) -> int:
    """Print the skills that are found."""
    found = find_skills(workspace)
    if as_json:
        print_json({'skills': [_to_json(skill) for skill in found.skills], 'refused': found.refused})
        return 0
    if found.skills:
        rows = [(skill.name, skill.source, skill.description) for skill in found.skills]
        print_table(('NAME', 'FOLDER', 'DESCRIPTION'), rows, flexible=('DESCRIPTION',))
    else:
        say('no skills yet; make one with: habilis skills new NAME')
    for reason in found.refused:
        say(reason)
    return 0


def show_skill(name: str, workspace: str, *, as_json: bool) -> int:
    """Print a skill."""
    for skill in _named([name], workspace):
        if as_json:
            print_json({**_to_json(skill), 'body': skill.body})
            continue
        page = Page()
        page.line(skill.name, 'bold')
        page.text(skill.description, indent=2)
        fields = {'license': skill.license, 'compatibility': skill.compatibility, 'folder': skill.source}
        listed = {**fields, **skill.metadata, 'asks for tools': ', '.join(skill.allowed_tools)}
        page.block('', '\n'.join(f'{key}: {one_line(value)}' for key, value in listed.items() if value))
        page.block('files', '\n'.join(f'{path} ({len(data):,} bytes)' for path, data in sorted(skill.files.items())))
        page.block('not as the specification wants it', '\n'.join(skill.problems))
        page.block('text', skill.body)
    return 0


def add_skills(sources: Sequence[str], *, as_json: bool) -> int:
    """Copy skills to those of the user."""
    added = [write_skill(skill, user_folder()) for skill in load_skills(sources)]
    if as_json:
        print_json({'added': [str(folder) for folder in added]})
    else:
        print('\n'.join(map(str, added)))
    return 0


def remove_skills(names: Sequence[str], *, yes: bool) -> int:
    """Delete skills of the user after confirmation."""
    folders = [user_folder() / skill_name(name) for name in names]
    for folder in folders:
        if not folder.is_dir():
            msg = f'you have no skill {folder.name} in {folder.parent}; delete the folder of one of a project yourself'
            raise SkillError(msg)
    if not confirm_deletion(f'Delete {", ".join(map(str, folders))} for good?', yes=yes):
        return 1
    for folder in folders:
        folder.unlink() if folder.is_symlink() else shutil.rmtree(folder)
    return 0


def validate_skills(sources: Sequence[str], *, as_json: bool) -> int:
    """Print what strict readers object to."""
    found: dict[str, Sequence[str]] = {}
    for source in sources:
        try:
            found |= {skill.source: skill.problems for skill in load_skills([source])}
        except SkillError as error:
            found[source] = [str(error)]
    if as_json:
        print_json(found)
    else:
        page = Page()
        for source, problems in found.items():
            page.line(f'{source}: {"not valid" if problems else "valid"}')
            page.text('\n'.join(problems), indent=2) if problems else None
    return 1 if any(found.values()) else 0


def new_skill(name: str, parent: Path, description: str) -> int:
    """Make the folder of a skill."""
    made = skill_name(name)
    body = BODY.replace('{name}', made)
    print(write_skill(Skill(name=made, description=one_line(description), body=body), parent))
    return 0


def export_skills(names: Sequence[str], target: Path, workspace: str) -> int:
    """Write skills as the specification wants them."""
    for skill in _named(names, workspace):
        print(write_skill(skill, target))
    return 0


def _named(names: Sequence[str], workspace: str) -> tuple[Skill, ...]:
    """Skills that are found, by name, and others by path."""
    found = {skill.name: skill for skill in find_skills(workspace).skills}
    return load_skills(found.get(name, name) for name in names)


def _to_json(skill: Skill) -> dict[str, object]:
    return {
        'name': skill.name,
        'description': skill.description,
        'source': skill.source,
        'license': skill.license,
        'compatibility': skill.compatibility,
        'allowed_tools': skill.allowed_tools,
        'metadata': dict(skill.metadata),
        'files': {path: len(data) for path, data in skill.files.items()},
        'digest': skill.digest,
        'problems': skill.problems,
    }
