"""The command: collects the findings and prints them."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from habilis.cli.doctor.checks import Finding

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)

MARKS = {'ok': '✓', 'bad': '✗', 'absent': '–'}
COLOURS = {'ok': '\033[32m', 'bad': '\033[31m', 'absent': '\033[2m'}

EPILOG = """\b
The exit code is 0 if the default sandbox works, 1 if it does not.
✓ is there   ✗ is needed and missing or broken   – is optional and not there
"""


@app.command(epilog=EPILOG)
def doctor(
    json: Annotated[bool, typer.Option('--json', help='Print one JSON object instead.')] = False,
) -> None:
    """Look at what is here and what is missing, how to get it, and test the sandbox for real."""
    from habilis.cli.doctor.checks import SELF_TEST, examine

    works = False
    shown: list[Finding] = []
    for finding in examine():
        works = works or (finding.name == SELF_TEST and finding.status == 'ok')
        shown.append(finding)
        if not json:
            _print(finding)
    if json:
        _print_json(works, shown)
    else:
        typer.echo(f'\n{_verdict(works, shown)}')
    raise typer.Exit(0 if works else 1)


def _print(finding: 'Finding') -> None:
    """One line as soon as it is known: the self-test may take half a minute the first time."""
    import sys

    from habilis.cli.sandbox.terminal import colourful

    mark = MARKS[finding.status]
    if colourful(sys.stdout):
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


def _verdict(works: bool, findings: 'list[Finding]') -> str:
    if not works:
        wrong = ', '.join(finding.name for finding in findings if finding.status == 'bad')
        return f'The sandbox does not work here. Look at: {wrong}.'
    return 'The sandbox works.'
