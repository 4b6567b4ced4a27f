"""`habilis tools show`."""

import sys
from dataclasses import asdict

from habilis.agent.hooks.sanitize import escape_controls
from habilis.cli.colours import has_colours
from habilis.cli.printing import Page, console
from habilis.cli.streams import say
from habilis.cli.tools.library import open_library, print_json
from habilis.forge.contract import SOURCE_FILES, Language, Manifest
from habilis.forge.source import read_source


def show_tool(name: str, version: int | None, folder: str | None, *, as_json: bool) -> int:
    """Print everything about a version: signature, documentation, origin, code and tests."""
    library = open_library(folder, fill=True)
    made, candidate = library.manifest(name, version), library.candidate(name, version)
    edited = library.is_edited(name, version)
    if as_json:
        own = {'code': candidate.code, 'tests': candidate.tests}
        facts = {'version_in_use': library.current(name), 'edited': edited, 'test_count': made.tests}
        print_json({**asdict(made), **facts, **own})
        return 0
    page = Page()
    page.line(made.signature, 'bold')
    page.line()
    page.line(read_source(name, candidate.code, made.language).documentation)
    page.line()
    for line in _facts(made, library.current(name)):
        page.line(line, 'dim')
    for file, text in zip(SOURCE_FILES[made.language], (candidate.code, candidate.tests), strict=True):
        _show_code(page, f'v{made.version}/{file}', text, made.language)
    if edited:
        say(f'{name} version {made.version} was edited by hand; test and accept the edits: habilis tools doctor --fix')
    return 0


def _facts(made: Manifest, current: int) -> list[str]:
    state = 'in use' if made.version == current else f'version {current} is in use'
    checked = f'{made.killed} of {made.mutants} wrong variants noticed' if made.mutants else ''
    facts = {
        'version': f'{made.version} ({state})',
        'created': f'{made.created:%Y-%m-%d %H:%M} UTC',
        'language': made.language if made.language != 'python' else '',
        'origin': made.origin,
        'request': made.request,
        'context': ', '.join(made.context),
        'tests': f'{made.tests}' + (f', {checked}' if checked else ''),
        'uses': ', '.join(f'{name} v{version}' for name, version in made.uses.items()),
        'packages': ', '.join(made.packages),
        'tags': ', '.join(made.tags),
        'note': made.note,
    }
    lines = [(name, value) for name, value in facts.items() if value] + [('review', found) for found in made.findings]
    return [f'{name + ":":<10}{value}' for name, value in lines]


def _show_code(page: Page, title: str, code: str, language: Language) -> None:
    page.line()
    page.line(f'{"#" if language == "python" else "//"} {title}', 'dim')
    if has_colours(sys.stdout):
        from rich.syntax import Syntax

        shown = Syntax(escape_controls(code).rstrip(), language, theme='ansi_dark', background_color='default')
        console().print(shown, soft_wrap=True)
    else:
        page.line(code.rstrip())
