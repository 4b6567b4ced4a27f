"""Subcommands of `habilis skills` and their options. `skills.py` does the work, and is imported when one runs."""

from pathlib import Path
from typing import Annotated

import typer

from habilis.cli.options import AsJson, Yes, command_group, folder, not_empty

EPILOG = """\b
A skill is a folder with SKILL.md (https://agentskills.io). `habilis run` and `habilis chat` find those of the shared
folder (.skills, .agents/skills, .claude/skills, .habilis/skills) and your own, which `add` copies. Their scripts run in
the sandbox only.

\b
Examples:
  habilis skills new pdf-forms
  habilis skills validate .skills/pdf-forms
  habilis skills add downloads/pdf-forms.zip
  habilis skills show pdf-forms
  habilis skills export pdf-forms shared

\b
Exit codes: 0 success, 1 error (or a skill is not valid), 2 usage error.
"""

app = command_group('List, show, add, check, make and export Agent Skills.', EPILOG)

Name = Annotated[
    str, typer.Argument(metavar='NAME|PATH', help='Name of a skill, its folder, or a zip file.', show_default=False)
]
Workspace = Annotated[
    str,
    typer.Option('--workspace', '-w', metavar='DIR', help='Folder to look for skills in, too.', callback=folder),
]


@app.command('list')
def list_(workspace: Workspace = '.', as_json: AsJson = False) -> None:
    """List the skills that are found, and why others cannot be used."""
    from habilis.cli.skills.skills import list_skills

    raise typer.Exit(list_skills(workspace, as_json=as_json))


@app.command()
def show(name: Name, workspace: Workspace = '.', as_json: AsJson = False) -> None:
    """Show the description, the files and the text of a skill."""
    from habilis.cli.skills.skills import show_skill

    raise typer.Exit(show_skill(name, workspace, as_json=as_json))


@app.command()
def add(
    sources: Annotated[list[str], typer.Argument(metavar='PATH', help='Folder or zip file.', show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Copy skills to your own, for all folders. Harmless faults are corrected."""
    from habilis.cli.skills.skills import add_skills

    raise typer.Exit(add_skills(sources, as_json=as_json))


@app.command()
def rm(
    names: Annotated[list[str], typer.Argument(metavar='NAME', help='Names of own skills.', show_default=False)],
    yes: Yes = False,
) -> None:
    """Delete skills of your own."""
    from habilis.cli.skills.skills import remove_skills

    raise typer.Exit(remove_skills(names, yes=yes))


@app.command()
def validate(
    sources: Annotated[list[str], typer.Argument(metavar='PATH', help='Folder or zip file.', show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Check skills as strictly as the specification. The exit code is 1 if one is not valid."""
    from habilis.cli.skills.skills import validate_skills

    raise typer.Exit(validate_skills(sources, as_json=as_json))


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar='NAME', help='Name, such as pdf-forms.', show_default=False)],
    parent: Annotated[Path, typer.Option('--in', metavar='DIR', help='Folder to make it in.')] = Path('.skills'),
    description: Annotated[
        str,
        typer.Option('--description', metavar='TEXT', help='What it does, and when to use it.', callback=not_empty),
    ] = 'What it does. When to use it.',
) -> None:
    """Make the folder of a new skill, with a page to fill in."""
    from habilis.cli.skills.skills import new_skill

    raise typer.Exit(new_skill(name, parent, description))


@app.command()
def export(
    names: Annotated[list[str], typer.Argument(metavar='NAME… DIR', help='Skills, and the folder to write into.')],
    workspace: Workspace = '.',
) -> None:
    """Write skills for other agents, as the specification wants them. For tools: habilis tools export --skill."""
    *skills, target = names
    if not skills:
        msg = 'give the names of skills, and the folder to write into'
        raise typer.BadParameter(msg, param_hint='NAME')
    from habilis.cli.skills.skills import export_skills

    raise typer.Exit(export_skills(skills, Path(target), workspace))
