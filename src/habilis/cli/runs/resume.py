"""`habilis runs resume`: resume a run with its recorded request, or with the user's program that made it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import typer

from habilis.agent.agent import Agent
from habilis.agent.durable.records import ASK, Inputs
from habilis.agent.durable.trajectory import read_trajectories
from habilis.agent.hooks.sanitize import escape_controls
from habilis.cli.run.execution import execute
from habilis.cli.run.report import QUESTION, WRONG_USAGE
from habilis.cli.run.request import ResumeOverrides, ResumeRequest, RunRequest
from habilis.cli.runs.app_loader import load_app
from habilis.cli.runs.flow_resume import resume_flow
from habilis.cli.runs.journal import JournalAccess, with_journal
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
    resume: Callable[[str], str]
    """Makes the command line that resumes it, with more options."""


def resume_run(options: ResumeOptions) -> int:
    """Resume a run and print its result. Returns the exit code. Raises `HabilisError`."""
    recorded = read_recorded_run(options)
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
    request = ResumeRequest(
        run=options.run,
        answer=options.answer,
        max_steps=options.max_steps,
        on_change=options.on_change,
        replies=recorded.replies,
    )
    if options.app is not None:
        return _resume_with_app(options, options.app, recorded, request)
    return _resume_as_recorded(options, recorded, request)


def _resume_as_recorded(options: ResumeOptions, recorded: RecordedRun, resume: ResumeRequest) -> int:
    inputs = recorded.inputs
    overrides = ResumeOverrides(
        model=options.model,
        workspace=options.workspace,
        trusted=not recorded.reading.imported,
        settings=options.settings,
        as_json=options.as_json,
        quiet=options.quiet,
    )
    request = None if inputs is None else RunRequest.from_meta(inputs.task, inputs.meta, resume, **overrides)
    if request is None:
        raise JournalError(_needs_app(recorded))
    return execute(request)


def _resume_with_app(options: ResumeOptions, app: str, recorded: RecordedRun, resume: ResumeRequest) -> int:
    loaded = load_app(app, journal=options.journal, user=options.user)
    if isinstance(loaded, Agent) and recorded.inputs is not None:
        if options.model is not None or options.workspace is not None:
            msg = 'the program has its own model and workspace; leave out --model and --workspace'
            raise typer.BadParameter(msg, param_hint='--app')
        request = RunRequest(
            task=recorded.inputs.task,
            settings=options.settings,
            as_json=options.as_json,
            quiet=options.quiet,
            app=app,
            resume=resume,
        )
        return execute(request, agent=loaded)
    if isinstance(loaded, Agent) or recorded.inputs is not None:
        kind = 'an agent' if recorded.reading.info.kind == 'agent' else 'a flow'
        msg = f'{options.run} is the run of {kind}, and {app} is not {kind}'
        raise typer.BadParameter(msg, param_hint='--app')
    _refuse_agent_options(options)
    return resume_flow(
        loaded,
        options.run,
        journal=options.journal,
        user=options.user,
        on_change=options.on_change,
        command=recorded.resume(''),
        as_json=options.as_json,
        quiet=options.quiet,
    )


def _refuse_agent_options(options: ResumeOptions) -> None:
    """Refuse options that have no effect on a flow."""
    if options.answer is not None:
        msg = f'{options.run} is the run of a flow; answer it with `habilis runs answer`'
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
                msg = f'{options.run} ended before its task was recorded and cannot be resumed; start a new run'
                raise reading.damage[0] if reading.damage else JournalError(msg)
        ended = reading.ended
        question = ended.get('question') if ended.get('ended') == 'question' else None
        done = [path for path, entry in reading.steps() if entry.end is not None and entry.end.kind == 'done']
        found.append(
            RecordedRun(
                reading=reading,
                inputs=inputs,
                replies=sum(name_of(path) == ASK for path in done),
                question=question if isinstance(question, str) else None,
                resume=partial(access.command, 'resume', options.run),
            )
        )
        return 0

    with_journal(options.journal, options.user, read)
    return found[0]


def _needs_app(recorded: RecordedRun) -> str:
    info = recorded.reading.info
    if info.kind == 'flow':
        name = info.name.rpartition(':')[2]
        return (
            f'{info.run} is the run of a flow; name the flow with: {recorded.resume(f" --app {info.name}")}, '
            f'or in Python: await {name}.resume({info.run!r})'
        )
    return (
        f'{info.run} was made by a program; name its agent with: {recorded.resume(" --app MODULE:NAME")}, '
        f'or in Python: await agent.resume({info.run!r})'
    )
