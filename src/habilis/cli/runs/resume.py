"""`habilis runs resume`: resume a run with its recorded request, or with the user's program that made it."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace

import typer

from habilis.agent.agent import Agent
from habilis.agent.durable.records import ASK, COMPACTION, Inputs
from habilis.agent.durable.trajectory import read_trajectories
from habilis.agent.hooks.sanitize import escape_controls
from habilis.agent.run_spec import RunSpec, resume_spec
from habilis.cli.run.execution import execute
from habilis.cli.run.report import QUESTION, WRONG_USAGE
from habilis.cli.run.request import CommandRequest, ResumeOverrides
from habilis.cli.runs.app_loader import load_app
from habilis.cli.runs.flow_resume import resume_flow
from habilis.cli.runs.journal import JournalAccess, with_journal
from habilis.cli.runs.pending import app_option, own_command
from habilis.cli.streams import say
from habilis.cli.terminal_user import TerminalUser
from habilis.core.errors import JournalError
from habilis.journal import OnChange
from habilis.journal.index import name_of
from habilis.journal.runs import RunView


@dataclass(frozen=True, kw_only=True)
class ResumeOptions:
    """Arguments of `habilis runs resume`. None means not given."""

    run: str
    journal: str | None = None
    user: str | None = None
    answer: str | None = None
    max_steps: int | None = None
    model: str | None = None
    workspace: str | None = None
    on_change: OnChange = 'fail'
    app: str | None = None
    as_json: bool = False
    quiet: bool = False

    @property
    def settings(self) -> dict[str, object]:
        """Options that override settings."""
        return {'journal': self.journal, 'user': self.user, 'max_steps': self.max_steps}


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """What the journal says about the run to resume."""

    reading: RunView
    inputs: Inputs | None
    """None for a flow."""

    replies: int
    question: str | None
    app: str
    """Option that names its program, for command lines to show; empty if it needs none."""

    command: Callable[[str, str], str]
    """Makes a `habilis runs` command line for it, from a subcommand and more options."""

    def resume(self, more: str = '') -> str:
        """The command line that resumes it."""
        return self.command('resume', f'{more}{self.app}')


def resume_run(options: ResumeOptions) -> int:
    """Resume a run and print its result. Returns the exit code. Raises `HabilisError`."""
    recorded = read_recorded_run(options)
    options = replace(options, run=recorded.reading.run)
    if recorded.inputs is not None and recorded.inputs.deps_name and recorded.reading.state != 'done':
        raise JournalError(_needs_deps(options.run, recorded.inputs.deps_name))
    check_resumable(options, recorded)
    if options.answer is not None and recorded.reading.state == 'done':
        say(f'{options.run} already has an answer, so --answer is not used; leave it out to print the answer again')
        return WRONG_USAGE
    if recorded.question is not None and options.answer is None:
        user = TerminalUser()
        answer = user.ask(f'\n{escape_controls(recorded.question)}\n> ')
        if answer is None:
            if not user.is_present:
                say(f'the agent asks: {escape_controls(recorded.question)}')
            say(f'answer with: {recorded.resume(" --answer TEXT")}')
            return QUESTION
        options = replace(options, answer=answer)
    given = {'max_steps': options.max_steps, 'on_change': options.on_change}
    spec = resume_spec(options.run, options.answer, given)
    if options.app is not None:
        return _resume_with_app(options, options.app, recorded, spec)
    return _resume_as_recorded(options, recorded, spec)


def check_resumable(options: ResumeOptions, recorded: RecordedRun, command: str = 'resume', given: str = '') -> None:
    """Raise an error if the run needs a program that is not given, or is not the right one.

    The error shows the `command` with the options that were `given`, and with the program.
    """
    if options.app is None:
        if recorded.app:
            raise JournalError(_needs_app(recorded, command, given))
        return
    loaded = load_app(options.app, journal=options.journal, user=options.user)
    if isinstance(loaded, Agent) != (recorded.inputs is not None):
        kind = 'an agent' if recorded.reading.info.kind == 'agent' else 'a flow'
        msg = f'{options.run} is the run of {kind}, and {options.app} is not {kind}'
        raise typer.BadParameter(msg, param_hint='--app')


def _resume_as_recorded(options: ResumeOptions, recorded: RecordedRun, spec: RunSpec) -> int:
    inputs = recorded.inputs
    overrides = ResumeOverrides(
        model=options.model,
        workspace=options.workspace,
        trusted=not recorded.reading.imported,
        settings=options.settings,
        replies=recorded.replies,
        as_json=options.as_json,
        quiet=options.quiet,
    )
    request = None if inputs is None else CommandRequest.from_meta(inputs.meta, spec, **overrides)
    if request is None:
        raise JournalError(_needs_app(recorded))
    return execute(request)


def _resume_with_app(options: ResumeOptions, app: str, recorded: RecordedRun, spec: RunSpec) -> int:
    loaded = load_app(app, journal=options.journal, user=options.user)
    if isinstance(loaded, Agent):
        if options.model is not None or options.workspace is not None:
            msg = 'the program has its own model and workspace; leave out --model and --workspace'
            raise typer.BadParameter(msg, param_hint='--app')
        request = CommandRequest(
            spec=spec,
            replies=recorded.replies,
            app=app,
            settings=options.settings,
            as_json=options.as_json,
            quiet=options.quiet,
        )
        return execute(request, agent=loaded)
    _refuse_agent_options(options, recorded.command('show', ''))
    return resume_flow(
        loaded,
        options.run,
        journal=options.journal,
        user=options.user,
        on_change=options.on_change,
        command=recorded.command,
        app=recorded.app,
        as_json=options.as_json,
        quiet=options.quiet,
    )


def _refuse_agent_options(options: ResumeOptions, show: str) -> None:
    """Refuse options that have no effect on a flow."""
    if options.answer is not None:
        msg = f'{options.run} is the run of a flow; see how to answer it with: {show}'
        raise typer.BadParameter(msg, param_hint='--answer')
    given = {'--model': options.model, '--workspace': options.workspace, '--max-steps': options.max_steps}
    for name, value in given.items():
        if value is not None:
            msg = f'{options.run} is the run of a flow, which has no {name}; leave it out'
            raise typer.BadParameter(msg, param_hint=name)


def read_recorded_run(options: ResumeOptions) -> RecordedRun:
    """Read what is needed to resume a run. Raises `JournalError`."""
    found: list[RecordedRun] = []

    async def read(access: JournalAccess) -> int:
        reading = await access.read(options.run)
        inputs = None
        if reading.info.kind == 'agent':
            agents = await read_trajectories(reading)
            inputs = agents[0].inputs if agents else None
            if inputs is None:
                msg = f'{reading.run} ended before its task was recorded and cannot be resumed; start a new run'
                raise reading.damage[0] if reading.damage else JournalError(msg)
        ended = reading.ended
        question = ended.get('question') if ended.get('ended') == 'question' else None
        done = [path for path, entry in reading.steps() if entry.end is not None and entry.end.kind == 'done']
        found.append(
            RecordedRun(
                reading=reading,
                inputs=inputs,
                replies=sum(name_of(path) in {ASK, COMPACTION} for path in done),
                question=question if isinstance(question, str) else None,
                app=_app_option(options, reading, inputs),
                command=lambda name, more: access.command(
                    name, reading.run, more, value=' JSON' if name == 'answer' else ''
                ),
            )
        )
        return 0

    with_journal(options.journal, options.user, read)
    return found[0]


def _needs_deps(run: str, deps: str) -> str:
    return (
        f'{run} needs deps of type {deps}, which are not recorded, and which a command cannot pass; '
        f'resume it in Python: await agent.resume({run!r}, deps=…)'
    )


def _app_option(options: ResumeOptions, reading: RunView, inputs: Inputs | None) -> str:
    return app_option(reading, inputs) if options.app is None else f' --app {shlex.quote(options.app)}'


def _needs_app(recorded: RecordedRun, command: str = 'resume', given: str = '') -> str:
    info = recorded.reading.info
    if own := own_command(recorded.reading):
        return f'{info.run} has a command of its own; resume it with: {own}'
    what = 'is the run of a flow; name the flow' if info.kind == 'flow' else 'was made by a program; name its agent'
    name = info.name.rpartition(':')[2] if info.kind == 'flow' else 'agent'
    in_python = f', or in Python: await {name}.resume({info.run!r})' if command == 'resume' else ''
    return f'{info.run} {what} with: {recorded.command(command, given + recorded.app)}{in_python}'
