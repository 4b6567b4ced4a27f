"""`habilis tools build` and `habilis tools compose`."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import typer

from habilis.agent.hooks.sanitize import escape_controls
from habilis.cli.interrupt import INTERRUPTED
from habilis.cli.runs.journal import JournalAccess, with_journal
from habilis.cli.settings import read_settings, settings_with_options
from habilis.cli.streams import say
from habilis.cli.tools.library import open_model, print_json, run_with_library
from habilis.core.codec import Json
from habilis.core.errors import ForgeError, JournalError, ModelError
from habilis.forge.build.composition import compose
from habilis.forge.build.forge import BUILD_FLOW, BuildOptions, Built, Forge
from habilis.forge.build.reference import Reference, read_references
from habilis.forge.contract import Language
from habilis.forge.library.library import Library
from habilis.journal.copies import new_run_id
from habilis.journal.stores.urls import OFF


@dataclass(frozen=True, kw_only=True)
class BuildRequest:
    """The arguments of the command."""

    request: str
    examples: Sequence[str]
    model: str | None
    candidates: int | None
    library: str | None
    as_json: bool
    download: bool
    use: bool = False
    """Whether to answer the request with the tool."""

    context: Sequence[str] = ()
    language: Language | None = None
    name: str = ''
    compose: Sequence[str] = ()
    """Tools of the library to compose the new one of."""

    run: str = ''
    """The recorded build to resume."""

    def resume_command(self, run: str) -> str:
        """The command line that resumes the build."""
        options = {'--model': self.model, '--library': self.library}
        if self.candidates is not None:
            options['--candidates'] = str(self.candidates)
        given = [word for name, value in options.items() if value for word in (name, value)]
        return shlex.join(['habilis', 'tools', 'build', '--resume', run, *(['--use'] if self.use else []), *given])


def build_tool(given: BuildRequest) -> int:
    """Find or build a tool, or resume that; the exit code is 1 if it was refused."""
    if given.run:
        given = _recorded(given)
    run = given.run or new_run_id()
    journal = read_settings(lambda: settings_with_options({})).journal
    hint = '' if journal == OFF else f'resume with: {given.resume_command(run)}'

    async def work(library: Library) -> int:
        references = await _references(given)
        async with open_model(given.model, download=given.download) as model:
            forge = Forge(library, model, options=BuildOptions(candidates=given.candidates), watch=_show)
            if hint:
                say(f'the build is recorded as {run}; if it is interrupted, {hint}')
            built = await _build(forge, given, references, journal, run)
            answer = await forge.answer(given.request, built.name) if given.use and built.name else None
        if given.as_json:
            fields = {'status': built.status, 'name': built.name, 'reason': built.reason, 'answer': answer}
            print_json({**fields, 'run_id': run})
        elif built.name:
            say(f'{built.status}: {built.name} v{built.version} in {library.folder}')
            print(built.name if answer is None else escape_controls(answer))
        else:
            say(f'refused: {escape_controls(built.reason)}')
        return 0 if built.name else 1

    message = f'interrupted; {hint}' if hint else 'interrupted; it was not recorded'
    try:
        return run_with_library(given.library, work, last_words=lambda: message)
    except KeyboardInterrupt:
        say(message)
        return INTERRUPTED
    except ModelError:
        if hint:
            say(f'the build is recorded; {hint}')
        raise


async def _references(given: BuildRequest) -> list[Reference]:
    """The material to build after. One that cannot be read is a usage error, before a model is loaded."""
    try:
        return await read_references(given.context, given.request)
    except ForgeError as error:
        raise typer.BadParameter(str(error), param_hint='--context') from None


async def _build(
    forge: Forge, given: BuildRequest, references: Sequence[Reference], journal: str | None, run: str
) -> Built:
    if given.run:
        return await forge.resume(run, journal=journal)
    if given.compose:
        return await compose(
            forge,
            given.compose,
            given.name,
            request=given.request,
            examples=given.examples,
            journal=journal,
            run_id=run,
        )
    return await forge.build(
        given.request, given.examples, context=references, language=given.language, journal=journal, run_id=run
    )


def _recorded(given: BuildRequest) -> BuildRequest:
    """The build to resume, with its whole id and its request. Raises `JournalError`."""
    found: list[BuildRequest] = []

    async def read(access: JournalAccess) -> int:
        reading = await access.read(given.run)
        opening = reading.index.find('')
        if reading.info.name != BUILD_FLOW or opening is None or opening.opened is None:
            msg = f'{reading.run} is not the build of a tool; resume it with: {access.command("resume", reading.run)}'
            raise JournalError(msg)
        fields = cast('Mapping[str, Mapping[str, Json]]', await reading.value(opening.opened))
        found.append(replace(given, run=reading.run, request=str(fields['inputs']['request'])))
        return 0

    with_journal(None, None, read)
    return found[0]


def _show(stage: str, text: str) -> None:
    first, *more = escape_controls(text).splitlines()
    say(f'{stage}: {first}{" …" if more else ""}')
