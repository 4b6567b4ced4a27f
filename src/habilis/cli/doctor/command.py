"""Options and output of `habilis doctor`."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from habilis.cli.doctor.checks import Finding

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)

MARKS = {'ok': '✓', 'bad': '✗', 'absent': '–'}
COLOURS = {'ok': '\033[32m', 'bad': '\033[31m', 'absent': '\033[2m'}

EPILOG = """\b
✓ found   ✗ required and missing or broken   – optional and not found
The exit code is 0 if the default sandbox works, and 1 if not.
"""


@app.command(epilog=EPILOG)
def doctor(
    json: Annotated[bool, typer.Option('--json', help='Print one JSON object.')] = False,
) -> None:
    """Check the installation, show how to install what is missing, and test the sandbox."""
    from habilis.cli.doctor.checks import SELF_TEST, run_checks

    works = False
    shown: list[Finding] = []
    for finding in run_checks():
        works = works or (finding.name == SELF_TEST and finding.status == 'ok')
        shown.append(finding)
        if not json:
            _print(finding)
    if json:
        _print_json(works, shown)
    else:
        typer.echo(f'\n{_summary(works, shown)}')
    raise typer.Exit(0 if works else 1)


def _print(finding: 'Finding') -> None:
    """Print a finding at once: the first self-test may take half a minute."""
    import sys

    from habilis.cli.colours import has_colours

    mark = MARKS[finding.status]
    if has_colours(sys.stdout):
        mark = f'{COLOURS[finding.status]}{mark}\033[0m'
    advice = f' → {finding.advice}' if finding.advice else ''
    typer.echo(f'{mark} {finding.name:<16} {finding.detail}{advice}')
    sys.stdout.flush()


def _print_json(works: bool, findings: 'list[Finding]') -> None:
    import dataclasses
    import json

    from habilis._version import __version__

    shown = [dataclasses.asdict(finding) for finding in findings]
    typer.echo(json.dumps({'ok': works, 'version': __version__, 'findings': shown}, indent=2, ensure_ascii=False))


def _summary(works: bool, findings: 'list[Finding]') -> str:
    if not works:
        broken = ', '.join(finding.name for finding in findings if finding.status == 'bad')
        return f'The sandbox does not work. Broken: {broken}.'
    return 'The sandbox works.'
