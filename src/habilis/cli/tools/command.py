"""Subcommands of `habilis tools` and their options. The other modules do the work.

Those modules are imported when a subcommand runs, so that `--help` is fast.
"""

from pathlib import Path
from typing import Annotated

import typer

from habilis.cli.options import not_empty
from habilis.cli.tools.options import AsJson, LibraryFolder, Name, Version, Yes

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
  habilis tools test                             test all tools again
  habilis tools edit slugify slugify.py --tests test_slugify.py --note "keeps dots"
  habilis tools export slugify title_case tools.zip

\b
Exit codes: 0 success, 1 error (or a test fails, nothing is found, the library has problems), 2 usage error,
130 Ctrl-C.
"""

app = typer.Typer(
    help='List, search, build, test, run, change and share the tools of a library.',
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)


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


@app.command()
def history(name: Name, as_json: AsJson = False, library: LibraryFolder = None) -> None:
    """List the versions of a tool, newest first."""
    from habilis.cli.tools.versions import show_history

    raise typer.Exit(show_history(name, library, as_json=as_json))


@app.command()
def stats(as_json: AsJson = False, library: LibraryFolder = None) -> None:
    """Show calls, success and time of each version, and which tools may be deleted."""
    from habilis.cli.tools.stats import show_stats

    raise typer.Exit(show_stats(library, as_json=as_json))


# Run ------------------------------------------------------------------------------------------------------------------


@app.command('test')
def retest(
    names: Annotated[list[str] | None, typer.Argument(metavar='NAME', help='Tools to test (default: all).')] = None,
    as_json: AsJson = False,
    library: LibraryFolder = None,
) -> None:
    """Run the tests of tools again, in sandboxes. The exit code is 1 if one fails."""
    from habilis.cli.tools.test import run_tests

    raise typer.Exit(run_tests(names or [], library, as_json=as_json))


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

    raise typer.Exit(run_tool(name, arguments or [], library, as_json=as_json))


# Change ---------------------------------------------------------------------------------------------------------------


@app.command()
def seed(as_json: AsJson = False, library: LibraryFolder = None) -> None:
    """Add the tools that come with Habilis, if they are missing. Prints the names of those it has added."""
    from habilis.cli.tools.seed import add_seeds

    raise typer.Exit(add_seeds(library, as_json=as_json))


@app.command()
def build(
    request: Annotated[
        str,
        typer.Argument(metavar='REQUEST', help='What the tool is for.', show_default=False, callback=not_empty),
    ],
    example: Annotated[
        list[str] | None,
        typer.Option('--example', metavar='CONDITION', help='What must hold, such as "f(2) == 4"; can be repeated.'),
    ] = None,
    context: Annotated[
        list[str] | None,
        typer.Option(
            '--context',
            metavar='PATH_OR_URL',
            help='Folder, text file or link to a repository to build after; can be repeated.',
        ),
    ] = None,
    model: Annotated[str | None, typer.Option('--model', '-m', metavar='MODEL', help='Model to use.')] = None,
    candidates: Annotated[
        int, typer.Option('--candidates', metavar='N', help='Implementations to write side by side.', min=1, max=20)
    ] = 3,
    use: Annotated[bool, typer.Option('--use', help='Answer the request with the tool.')] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    library: LibraryFolder = None,
) -> None:
    """Find a tool for a request, or build one: tests first, verified in sandboxes, kept only if all of it holds."""
    from habilis.cli.tools.build import BuildRequest, build_tool

    given = BuildRequest(
        request=request,
        examples=example or [],
        context=context or [],
        model=model,
        candidates=candidates,
        use=use,
        library=library,
        as_json=as_json,
        download=yes,
    )
    raise typer.Exit(build_tool(given))


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


@app.command()
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


@app.command()
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


@app.command()
def export(
    names: Annotated[list[str], typer.Argument(metavar='NAME… FILE.zip', help='Tools, and the file to write.')],
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
    not_empty(target)
    from habilis.cli.tools.sharing import export_file, export_skills

    raise typer.Exit((export_skills if skill else export_file)(list(dict.fromkeys(tools)), Path(target), library))


@app.command('import')
def import_(
    file: Annotated[Path, typer.Argument(metavar='FILE.zip', help='File of `export`.', show_default=False)],
    as_json: AsJson = False,
    library: LibraryFolder = None,
) -> None:
    """Add the tools of an exported file, after testing them in sandboxes. Existing tools are never changed."""
    from habilis.cli.tools.sharing import import_file

    raise typer.Exit(import_file(file, library, as_json=as_json))
