"""Subcommands of `habilis tools` and their options. The other modules do the work.

Those modules are imported when a subcommand runs, so that `--help` is fast.
"""

from pathlib import Path
from typing import Annotated

import typer

from habilis.cli.options import RARE, AsJson, LibraryFolder, Yes, command_group, not_empty
from habilis.cli.tools.options import (
    Candidates,
    Examples,
    LanguageName,
    ModelName,
    Name,
    References,
    Version,
)

EPILOG = """\b
A library is a folder of tools: functions of Python or JavaScript with tests, under version numbers. Tools run in a
sandbox, never on this machine.

\b
Examples:
  habilis tools seed                             add the tools that come with Habilis
  habilis tools search "15 percent of 300"
  habilis tools run percent_of 15 300
  habilis tools run convert_length 26.2 from_unit=mi to_unit=km
  habilis tools build "Reverse a text" --example "reverse('ab') == 'ba'"
  habilis tools build "Reverse a text" --language javascript
  habilis tools add slugify.py                   add your own, with the tests in test_slugify.py
  habilis tools test                             test all tools again
  habilis tools edit slugify slugify.py --tests test_slugify.py --note "keeps dots"
  habilis tools export slugify title_case tools.zip

\b
Exit codes: 0 success, 1 error (or a test fails, nothing is found, the library has problems), 2 usage error,
130 Ctrl-C.
"""

app = command_group('List, search, build, test, run, change and share the tools of a library.', EPILOG)


# Read -----------------------------------------------------------------------------------------------------------------


@app.command('list')
def list_(as_json: AsJson = False, library: LibraryFolder = None) -> None:
    """List the tools with their version, number of calls, share of successful calls, and summary."""
    from habilis.cli.tools.list import list_tools

    raise typer.Exit(list_tools(library, as_json=as_json))


@app.command()
def search(
    query: Annotated[str, typer.Argument(metavar='QUERY', help='What the tool should do.', show_default=False)],
    limit: Annotated[int, typer.Option('--limit', metavar='N', help='Maximum number of tools.', min=1)] = 5,
    threshold: Annotated[
        float, typer.Option('--threshold', metavar='SHARE', help='Minimum score, 0 to 1.', min=0, max=1)
    ] = 0.0,
    as_json: AsJson = False,
    library: LibraryFolder = None,
) -> None:
    """Find the tools that fit a request, best first."""
    from habilis.cli.tools.list import search_tools

    raise typer.Exit(search_tools(query, library, limit=limit, threshold=threshold, as_json=as_json))


@app.command()
def show(name: Name, version: Version = None, as_json: AsJson = False, library: LibraryFolder = None) -> None:
    """Show the signature, documentation, origin, code and tests of a tool."""
    from habilis.cli.tools.show import show_tool

    raise typer.Exit(show_tool(name, version, library, as_json=as_json))


@app.command(rich_help_panel=RARE)
def history(name: Name, as_json: AsJson = False, library: LibraryFolder = None) -> None:
    """List the versions of a tool, newest first."""
    from habilis.cli.tools.versions import show_history

    raise typer.Exit(show_history(name, library, as_json=as_json))


@app.command(rich_help_panel=RARE)
def stats(as_json: AsJson = False, library: LibraryFolder = None) -> None:
    """Show calls, success and time of each version."""
    from habilis.cli.tools.usage import show_stats

    raise typer.Exit(show_stats(library, as_json=as_json))


@app.command(rich_help_panel=RARE)
def suggest(as_json: AsJson = False, library: LibraryFolder = None) -> None:
    """Show which tools are called with most success, which ones to compose, and which ones may be deleted."""
    from habilis.cli.tools.usage import show_suggestions

    raise typer.Exit(show_suggestions(library, as_json=as_json))


# Run ------------------------------------------------------------------------------------------------------------------


@app.command('test', rich_help_panel=RARE)
def retest(
    names: Annotated[list[str] | None, typer.Argument(metavar='NAME', help='Tools to test (default: all).')] = None,
    properties: Annotated[
        bool, typer.Option('--properties', help='Also check them on generated inputs, and look at their code.')
    ] = False,
    as_json: AsJson = False,
    library: LibraryFolder = None,
) -> None:
    """Run the tests of tools again, in sandboxes. The exit code is 1 if one fails."""
    from habilis.cli.tools.test import run_tests

    raise typer.Exit(run_tests(library, names or [], properties=properties, as_json=as_json))


@app.command(context_settings={'ignore_unknown_options': True})
def run(
    name: Name,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar='ARG|NAME=VALUE', help='Arguments, as JSON or plain text.', show_default=False),
    ] = None,
    as_json: AsJson = False,
    library: LibraryFolder = None,
) -> None:
    """Call a tool in a sandbox, and print its result."""
    from habilis.cli.tools.run import run_tool

    raise typer.Exit(run_tool(library, name, arguments or [], as_json=as_json))


@app.command(rich_help_panel=RARE)
def bench(
    name: Name,
    versions: Annotated[
        str, typer.Option('--versions', metavar='N,N', help='Versions (default: the one in use, and the one before).')
    ] = '',
    as_json: AsJson = False,
    library: LibraryFolder = None,
) -> None:
    """Compare how long calls of versions of a tool take, on the inputs of its tests and on generated ones."""
    from habilis.cli.tools.speed import compare_versions

    if not all(one.strip().isdecimal() for one in versions.split(',') if versions):
        msg = f'{versions!r} is not a list of versions, such as 1,3'
        raise typer.BadParameter(msg, param_hint='--versions')
    chosen = list(dict.fromkeys(int(one) for one in versions.split(',') if one))
    raise typer.Exit(compare_versions(library, name, chosen, as_json=as_json))


# Change ---------------------------------------------------------------------------------------------------------------


@app.command(rich_help_panel=RARE)
def seed(as_json: AsJson = False, library: LibraryFolder = None) -> None:
    """Add the tools that come with Habilis, if they are missing. Prints the names of those it has added."""
    from habilis.cli.tools.add import add_seeds

    raise typer.Exit(add_seeds(library, as_json=as_json))


@app.command()
def build(
    request: Annotated[
        str | None,
        typer.Argument(metavar='REQUEST', help='What the tool is for.', show_default=False, callback=not_empty),
    ] = None,
    example: Examples = None,
    context: References = None,
    language: LanguageName = None,
    model: ModelName = None,
    candidates: Candidates = None,
    resume: Annotated[
        str | None, typer.Option('--resume', metavar='RUN', help='Resume an interrupted build.', callback=not_empty)
    ] = None,
    use: Annotated[bool, typer.Option('--use', help='Answer the request with the tool.')] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    library: LibraryFolder = None,
) -> None:
    """Find a tool for a request, or build one: tests first, verified in sandboxes, kept only if all of it holds."""
    from habilis.cli.tools.build import BuildRequest, build_tool

    if (request is None) == (resume is None) or (resume and (example or context or language)):
        msg = 'give what the tool is for, or only --resume RUN'
        raise typer.BadParameter(msg, param_hint='REQUEST')
    given = BuildRequest(
        request=request or '',
        examples=example or [],
        context=context or [],
        language=language,
        model=model,
        candidates=candidates,
        use=use,
        run=resume or '',
        library=library,
        as_json=as_json,
        download=yes,
    )
    raise typer.Exit(build_tool(given))


@app.command(rich_help_panel=RARE)
def compose(
    names: Annotated[list[str], typer.Argument(metavar='NAME', help='Two tools or more.', show_default=False)],
    name: Annotated[str, typer.Option('--name', metavar='NEW', help='Name of the new tool.', show_default=False)],
    request: Annotated[
        str, typer.Option('--request', metavar='TEXT', help='What it is for (default: what the tools do together).')
    ] = '',
    example: Examples = None,
    model: ModelName = None,
    candidates: Candidates = None,
    yes: Yes = False,
    as_json: AsJson = False,
    library: LibraryFolder = None,
) -> None:
    """Build one tool that calls several tools of the library, tested like any other."""
    from habilis.cli.tools.build import BuildRequest, build_tool

    given = BuildRequest(
        request=request,
        examples=example or [],
        model=model,
        candidates=candidates,
        library=library,
        as_json=as_json,
        download=yes,
        name=name,
        compose=names,
    )
    raise typer.Exit(build_tool(given))


@app.command()
def add(
    file: Annotated[
        Path, typer.Argument(metavar='FILE', help='Python file with one public function.', show_default=False)
    ],
    tests: Annotated[
        Path | None, typer.Option('--tests', metavar='FILE', help='Its tests (default: test_FILE beside it).')
    ] = None,
    note: Annotated[
        str, typer.Option('--note', metavar='REASON', help='Why tests that miss wrong variants are enough.')
    ] = '',
    as_json: AsJson = False,
    library: LibraryFolder = None,
) -> None:
    """Add a tool that you wrote. Its tests must pass in a sandbox, and notice wrong variants of the code."""
    from habilis.cli.tools.add import add_file

    raise typer.Exit(add_file(file, tests, note, library, as_json=as_json))


@app.command()
def edit(
    name: Name,
    file: Annotated[Path, typer.Argument(metavar='FILE', help='File with the new code.', show_default=False)],
    tests: Annotated[
        Path | None, typer.Option('--tests', metavar='FILE', help='New tests (default: those of the version in use).')
    ] = None,
    note: Annotated[
        str,
        typer.Option('--note', metavar='REASON', help='Why it may fail the tests of the version before.'),
    ] = '',
    as_json: AsJson = False,
    library: LibraryFolder = None,
) -> None:
    """Make a new version of a tool. Its tests must pass; tools that use it are tested again."""
    from habilis.cli.tools.edit import edit_tool

    raise typer.Exit(edit_tool(name, file, tests, note, library, as_json=as_json))


@app.command(rich_help_panel=RARE)
def optimise(
    name: Name,
    model: ModelName = None,
    yes: Yes = False,
    as_json: AsJson = False,
    library: LibraryFolder = None,
) -> None:
    """Ask a model for a faster version, which is kept if it passes all tests and gives the same results."""
    from habilis.cli.tools.speed import optimise_tool

    raise typer.Exit(optimise_tool(library, name, model, download=yes, as_json=as_json))


@app.command(rich_help_panel=RARE)
def merge(
    keep: Annotated[str, typer.Argument(metavar='KEEP', help='Tool to keep.', show_default=False)],
    drop: Annotated[str, typer.Argument(metavar='DROP', help='Tool that does the same.', show_default=False)],
    as_json: AsJson = False,
    library: LibraryFolder = None,
) -> None:
    """Merge two tools that do the same: KEEP gets the tests of DROP, and replaces it in the tools that use it."""
    from habilis.cli.tools.edit import merge_tools

    raise typer.Exit(merge_tools(keep, drop, library, as_json=as_json))


@app.command(rich_help_panel=RARE)
def rollback(
    name: Name,
    version: Annotated[int, typer.Argument(metavar='VERSION', help='Version to use.', min=1, show_default=False)],
    library: LibraryFolder = None,
) -> None:
    """Use another version of a tool from now on."""
    from habilis.cli.tools.versions import roll_back

    raise typer.Exit(roll_back(name, version, library))


@app.command()
def rm(
    names: Annotated[list[str], typer.Argument(metavar='NAME', help='Names of the tools.', show_default=False)],
    yes: Yes = False,
    library: LibraryFolder = None,
) -> None:
    """Delete tools with all their versions. A tool that others use is not deleted."""
    from habilis.cli.tools.versions import remove_tools

    raise typer.Exit(remove_tools(names, library, yes=yes))


@app.command(rich_help_panel=RARE)
def doctor(
    fix: Annotated[
        bool, typer.Option('--fix', help='Rebuild the index, delete leftovers, accept edits that pass their tests.')
    ] = False,
    as_json: AsJson = False,
    library: LibraryFolder = None,
) -> None:
    """Find damage, edits by hand, missing dependencies and similar tools, and say what to do."""
    from habilis.cli.tools.doctor import check

    raise typer.Exit(check(library, fix=fix, as_json=as_json))


# Share ----------------------------------------------------------------------------------------------------------------


@app.command(rich_help_panel=RARE)
def export(
    names: Annotated[list[str], typer.Argument(metavar='NAME… FILE.zip', help='Tools, and the file to write.')],
    sign: Annotated[
        Path | None, typer.Option('--sign', metavar='KEYFILE', help='Sign it with an SSH key (uses ssh-keygen).')
    ] = None,
    skill: Annotated[
        bool, typer.Option('--skill', help='Write Agent Skills; the last argument is the folder to write them into.')
    ] = False,
    library: LibraryFolder = None,
) -> None:
    """Write tools, with all that they use, to one file."""
    *tools, target = names
    if not tools:
        msg = 'give the names of tools, and the folder to write into' if skill else 'give names of tools and a file'
        raise typer.BadParameter(msg, param_hint='NAME')
    if not skill and not target.endswith('.zip'):
        msg = f'the last argument must be a file that ends in .zip, not {target!r}'
        raise typer.BadParameter(msg, param_hint='FILE.zip')
    if skill and sign:
        msg = 'skills are not signed; leave out --sign or --skill'
        raise typer.BadParameter(msg, param_hint='--sign')
    not_empty(target)
    from habilis.cli.tools.sharing import export_file, export_skills

    chosen = list(dict.fromkeys(tools))
    if skill:
        raise typer.Exit(export_skills(chosen, Path(target), library))
    raise typer.Exit(export_file(chosen, Path(target), library, key=sign))


@app.command('import', rich_help_panel=RARE)
def import_(
    file: Annotated[
        Path, typer.Argument(metavar='FILE.zip|SKILL', help='What `export` has written.', show_default=False)
    ],
    trust: Annotated[
        Path | None,
        typer.Option('--trust', metavar='PUBKEY', help='File of public SSH keys, one of which must have signed it.'),
    ] = None,
    as_json: AsJson = False,
    library: LibraryFolder = None,
) -> None:
    """Add the tools of an exported file, after testing them in sandboxes. Existing tools are never changed."""
    from habilis.cli.tools.sharing import import_file

    raise typer.Exit(import_file(library, file, trust=trust, as_json=as_json))
