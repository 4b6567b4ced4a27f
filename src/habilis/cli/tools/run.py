"""`habilis tools run`."""

import inspect
import json
from collections.abc import Sequence

import typer

from habilis.cli.run.report import print_answer
from habilis.cli.tools.arguments import parse_arguments
from habilis.cli.tools.library import run_with_library
from habilis.core.codec import pack
from habilis.core.errors import ToolArgumentsError
from habilis.forge.library.library import Library
from habilis.forge.library.tools import library_tool


def run_tool(folder: str | None, name: str, texts: Sequence[str], *, as_json: bool) -> int:
    """Call a tool in a sandbox, and print its result."""
    return run_with_library(folder, lambda library: _run(library, name, texts, as_json=as_json), fill=True)


async def _run(library: Library, name: str, texts: Sequence[str], *, as_json: bool) -> int:
    tool = library_tool(library, name)
    try:
        args, kwargs = parse_arguments(inspect.signature(tool.function), texts)
        bound = tool.validate(args, kwargs)
    except (typer.BadParameter, ToolArgumentsError) as error:
        reason = error.message if isinstance(error, typer.BadParameter) else str(error)
        signature = library.manifest(name).signature
        msg = reason if signature in reason else f'{reason}\n{signature}'
        raise typer.BadParameter(msg, param_hint='ARGUMENTS') from None
    result = await tool.run(bound)
    if as_json:
        print(json.dumps(pack(result)))
    else:
        print_answer(result)
    return 0
