"""`habilis tools build`."""

from dataclasses import dataclass

from habilis.agent.hooks.sanitize import escape_controls
from habilis.cli.model_choice import ModelRequest, choose_model
from habilis.cli.settings import read_settings, settings_with_options
from habilis.cli.streams import say
from habilis.cli.terminal_user import TerminalUser
from habilis.cli.tools.library import print_json, run_with_library
from habilis.forge.build import Forge, Options
from habilis.forge.library import Library


@dataclass(frozen=True, kw_only=True)
class BuildRequest:
    """The arguments of the command."""

    request: str
    examples: list[str]
    model: str | None
    candidates: int
    use: bool
    """Whether to answer the request with the tool."""

    library: str | None
    as_json: bool
    download: bool


def build_tool(given: BuildRequest) -> int:
    """Find or build a tool; the exit code is 1 if it was refused."""

    async def work(library: Library) -> int:
        settings = read_settings(lambda: settings_with_options({}))
        wanted = ModelRequest(name=given.model, option='--model', download=given.download)
        model = await choose_model(wanted, settings, TerminalUser(), say)
        try:
            forge = Forge(library, model, options=Options(candidates=given.candidates), watch=_show)
            built = await forge.build(given.request, given.examples, journal=settings.journal)
            answer = await forge.answer(given.request, built.name) if given.use and built.name else None
        finally:
            await model.close()
        if given.as_json:
            print_json({'status': built.status, 'name': built.name, 'reason': built.reason, 'answer': answer})
        elif built.name:
            say(f'{built.status}: {built.name} v{built.version} in {library.folder}')
            print(built.name if answer is None else escape_controls(answer))
        else:
            say(f'refused: {escape_controls(built.reason)}')
        return 0 if built.name else 1

    return run_with_library(given.library, work)


def _show(stage: str, text: str) -> None:
    first, *more = escape_controls(text).splitlines()
    say(f'{stage}: {first}{" …" if more else ""}')
