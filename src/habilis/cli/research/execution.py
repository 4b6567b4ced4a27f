"""Run or resume a research, and write its report; also the report so far of one that is stopped or paused."""

import asyncio
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import typer

from habilis.agent.hooks.sanitize import escape_controls
from habilis.cli.interrupt import INTERRUPTED, run_interruptible
from habilis.cli.model_choice import ModelRequest, choose_model
from habilis.cli.run.report import ANSWERED, LIMIT_REACHED, print_answer
from habilis.cli.run.request import journal_options
from habilis.cli.runs.journal import JournalAccess
from habilis.cli.settings import read_settings, settings_with_options
from habilis.cli.streams import say
from habilis.cli.terminal_user import TerminalUser
from habilis.core.errors import ModelError
from habilis.core.narrowing import items_in
from habilis.core.settings import Settings
from habilis.flows import FlowPaused
from habilis.journal import Store
from habilis.journal.copies import new_run_id
from habilis.journal.stores.urls import OFF, open_store
from habilis.models.contract import Model
from habilis.models.scripted import script_of
from habilis.research.contract import EFFORTS, EffortName, PlanChange, Report, ResearchError
from habilis.research.documents import check_file, write_report
from habilis.research.flow import Research
from habilis.research.forms import read_form
from habilis.research.markdown_report import render_markdown
from habilis.research.plan_changes import change_plan
from habilis.research.sources import Folder, Together
from habilis.research.state import ResearchState, read_state, report_so_far
from habilis.tools.web.contract import PageSource

WEB = 'web'
"""The name of the web among the recorded sources."""


@dataclass(frozen=True, kw_only=True)
class ResearchRequest:
    """The arguments of the command."""

    goal: str
    effort: EffortName
    form: str
    sources: Sequence[str]
    web: bool
    out: str | None
    model: str | None
    max_cost: float | None
    run: str
    """The recorded research to resume; empty for a new one."""

    add: Sequence[str]
    drop: Sequence[int]
    journal: str | None
    user: str | None
    quiet: bool
    download: bool

    @property
    def names(self) -> list[str]:
        """The sources as they are recorded: folders and files by their whole paths, and the web."""
        return [*map(os.path.abspath, self.sources), *([WEB] if self.web else [])]


def run_research(given: ResearchRequest) -> int:
    """Research and write the report. Returns the exit code. Raises `HabilisError`."""
    options = {'journal': given.journal, 'user': given.user, 'max_cost': given.max_cost}
    settings = read_settings(lambda: settings_with_options(options))
    _check(given)
    return run_interruptible(lambda: _run(given, settings))


def _check(given: ResearchRequest) -> None:
    """Refuse what would fail after the work."""
    try:
        if given.out is not None:
            check_file(given.out)
        if not given.run:
            read_form(given.form)
            if not given.names:
                msg = 'nothing to read: name a folder with --source, or leave out --no-web'
                raise ResearchError(msg)
    except ResearchError as error:
        raise typer.BadParameter(str(error)) from None


async def _run(given: ResearchRequest, settings: Settings) -> int:
    store = open_store(settings.journal)
    try:
        return await _ResearchCommand(given, settings, store).run()
    finally:
        await store.close()


class _ResearchCommand:
    """One call of the command."""

    def __init__(self, given: ResearchRequest, settings: Settings, store: Store) -> None:
        self._given = given
        self._settings = settings
        self._store = store
        self._user = settings.user or ''

    async def run(self) -> int:
        """Open the model and the sources, research, and write the report."""
        recorded = await self._recorded() if self._given.run else None
        names = self._given.names if recorded is None else list(map(str, items_in(recorded.inputs.get('sources'))))
        name = self._given.model or (str(recorded.inputs['model']) if recorded is not None else None)
        wanted = ModelRequest(name=name, option='--model' if self._given.model else None, download=self._given.download)
        model = await choose_model(wanted, self._settings, TerminalUser(), self._say)
        if recorded is not None and (script := script_of(model)) is not None:
            script.skip(recorded.spent.calls)
        try:
            async with open_sources(names, self._settings) as source:
                self._say(f'sources: {source.description}')
                return await self._research(model, source, recorded)
        finally:
            await model.close()

    async def _recorded(self) -> ResearchState:
        """The research to resume, with the changes of its plan recorded."""
        access = JournalAccess(store=self._store, user=self._user, settings=self._settings, options='')
        run = await access.resolve(self._given.run)
        state = await read_state(self._store, run, user=self._user)
        if (self._given.add or self._given.drop) and state.status == 'done':
            msg = f'{run} is done, so its plan cannot be changed; start a new research'
            raise ResearchError(msg)
        changes = [*(PlanChange(add=text) for text in self._given.add), *(PlanChange(drop=n) for n in self._given.drop)]
        for change in changes:
            await change_plan(self._store, run, change, user=self._user)
        return state

    async def _research(self, model: Model, source: PageSource, recorded: ResearchState | None) -> int:
        given, run = self._given, new_run_id() if recorded is None else recorded.run
        self._show_bounds(given.effort if recorded is None else str(recorded.inputs['effort']))
        research = Research(model, source, max_cost=self._settings.max_cost, watch=self._say)
        hint = self._hint(run)
        code = ANSWERED
        try:
            if recorded is None:
                report = await research.run(
                    given.goal,
                    effort=given.effort,
                    form=given.form,
                    sources=given.names,
                    journal=self._store,
                    user=self._user,
                    run_id=run,
                )
            else:
                report = await research.resume(run, journal=self._store, user=self._user)
        except asyncio.CancelledError:
            report, code = await report_so_far(self._store, run), INTERRUPTED
            say(f'stopped; this is the report so far{hint}')
        except FlowPaused:
            report, code = await report_so_far(self._store, run), LIMIT_REACHED
            say(f'paused: ${report.spent.cost:.4f} were spent; this is the report so far{hint} --max-cost USD')
        except ModelError:
            if hint:
                say(f'what was found is recorded{hint}')
            raise
        self._deliver(report)
        return code

    def _show_bounds(self, effort: str) -> None:
        bounds = next(bounds for name, bounds in EFFORTS.items() if name == effort)
        rounds = f'{bounds.rounds} {"round" if bounds.rounds == 1 else "rounds"}'
        self._say(
            f'effort {effort}: at most {rounds} of {bounds.goals} sub-goals, {bounds.calls} calls, '
            f'{bounds.tokens:,} tokens'
        )

    def _hint(self, run: str) -> str:
        if self._settings.journal == OFF:
            return ''
        where = journal_options(self._given.journal, self._given.user)
        out = f' --out {shlex.quote(self._given.out)}' if self._given.out else ''
        return f'; resume with: habilis research --resume {run}{where}{out}'

    def _deliver(self, report: Report) -> None:
        spent = report.spent
        self._say(f'{len(report.sources)} sources cited, {spent.calls} calls, {spent.tokens:,} tokens')
        if self._given.out is None:
            print_answer(render_markdown(report))
            return
        write_report(report, self._given.out)
        self._say(f'written: {self._given.out}')

    def _say(self, text: str) -> None:
        if not self._given.quiet:
            say(escape_controls(text))


def open_sources(names: Sequence[str], settings: Settings) -> Together:
    """The sources with these names; close them."""
    from habilis.tools.web.web import Web

    folders = [Folder(name) for name in names if name != WEB]
    return Together(folders, Web(settings) if WEB in names else None)
