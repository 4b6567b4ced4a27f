"""Execute a run request: choose the model, run the agent, print the result."""

import asyncio
import contextlib
import json
import shlex
import sys
import time
from collections.abc import AsyncGenerator, Coroutine, Mapping
from dataclasses import replace

from habilis.agent.agent import Agent
from habilis.agent.contract import Result
from habilis.agent.events import AgentEvent, StepFinished, StepStarted
from habilis.agent.hooks.dispatch import Hook
from habilis.agent.hooks.sanitize import escape_controls
from habilis.agent.hooks.status import STARTING
from habilis.agent.policies import load_policy
from habilis.cli.interrupt import INTERRUPTED, run_interruptible
from habilis.cli.model_choice import ModelRequest, choose_model
from habilis.cli.pictures import picture_folder
from habilis.cli.program import AnyTool, load_tools
from habilis.cli.run import report
from habilis.cli.run.agent_options import choose_sandbox, make_agent, project_instructions
from habilis.cli.run.mcp_servers import servers_of, with_project_servers
from habilis.cli.run.request import OUTPUT_TYPES, CommandRequest
from habilis.cli.run.unstarted import discard_unstarted
from habilis.cli.run_view import RunDisplay
from habilis.cli.settings import read_settings
from habilis.cli.streams import say
from habilis.cli.terminal_user import TerminalUser
from habilis.core.errors import HabilisError, RunBusy, StoreUnavailable
from habilis.core.settings import Settings
from habilis.core.status_line import current_status
from habilis.journal.copies import new_run_id
from habilis.journal.stores.urls import OFF
from habilis.models.contract import Model
from habilis.models.scripted import script_of
from habilis.tools import people_toolset


def execute(request: CommandRequest, *, agent: Agent | None = None) -> int:
    """Execute a request and return the exit code. Raises `HabilisError`.

    `agent` is the agent of a user's program; without it, one is created from the request.
    """
    settings = read_settings(request.load_settings)
    status = current_status()
    if not (request.quiet or request.as_json):
        status.start(STARTING)
    if not settings.status:
        status.stop()
    user = TerminalUser()
    request = with_project_servers(request, user.confirm if user.is_present else None)
    execution = Execution(request, settings, agent)
    try:
        execution.tools += servers_of(request, user.answer if user.is_present else None)
        if request.tools is not None:
            execution.tools += load_tools(request.tools.names, folder=request.tools.folder, tell=execution.say)
        return run_interruptible(execution.run, last_words=execution.interrupt_message)
    except StoreUnavailable as error:
        execution.view.end_line()
        if execution.is_recorded:
            raise
        msg = f'{error.reason}. The run was not started; name another journal with --journal, or off'
        raise StoreUnavailable(msg) from error
    except HabilisError:
        execution.view.end_line()
        if execution.is_recorded and execution.ran_code:
            say(f'the run is recorded; resume with: {execution.command("resume")}')
        raise
    except KeyboardInterrupt:
        status.stop()
        execution.view.end_line()
        say(execution.interrupt_message())
        return INTERRUPTED
    finally:
        status.stop()


class Execution:
    """One run, with its view and its user."""

    def __init__(self, request: CommandRequest, settings: Settings, agent: Agent | None = None) -> None:
        self._request = request
        self._settings = settings
        self._agent = agent
        self._user = TerminalUser()
        self._user.shows_code = request.quiet
        self._run = request.spec.run_id or new_run_id()
        self.tools: list[AnyTool] = []
        """Tools of the user's program."""

        self._pictures = picture_folder(request.workspace, self._run)
        self.view = RunDisplay(quiet=request.quiet, verbose=request.verbose, header=False, pictures=self._pictures)
        self._began = time.time()
        self.steps = 0
        """Number of steps finished by this process."""

        self.ran_code = False
        """Whether this process has run code."""

        self.is_recorded = False
        """Whether the run can be resumed."""

    def command(self, name: str, more: str = '') -> str:
        """A `habilis runs` command line for this run."""
        app = f' --app {shlex.quote(self._request.app)}' if self._request.app and name != 'show' else ''
        return report.runs_command(name, self._run, f'{self._request.journal_options}{more}{app}')

    def interrupt_message(self) -> str:
        """What to tell the user after Ctrl-C."""
        resume = self.command('resume') if self.is_recorded else None
        return report.interrupt_message(self.steps, self._request.workspace, resume)

    async def run(self) -> int:
        """Choose the model, run the task, resume it with the user's answers to its questions, print the answer."""
        try:
            async with self._opened_agent() as (agent, model, meta):
                result = await self._start(agent, meta)
                while result.ended == 'question' and self._user.is_present:
                    with current_status().paused():
                        answer = await self._user.answer(result.question or '')
                        if answer is None:
                            current_status().stop()
                            break
                    result = await agent.resume(result.run_id, answer, hooks=self._hooks(agent))
                self._run = result.run_id
        except (HabilisError, asyncio.CancelledError) as error:
            is_ours = not self._request.spec.is_resumption and not isinstance(error, RunBusy)
            if is_ours and not (self.is_recorded and isinstance(error, asyncio.CancelledError)):
                await discard_unstarted(self._settings, self._run, since=self._began)
            raise
        finally:
            self._user.close()
        current_status().stop()
        self._print(result, model)
        return report.exit_code(result)

    @contextlib.asynccontextmanager
    async def _opened_agent(self) -> 'AsyncGenerator[tuple[Agent, str, Mapping[str, object]]]':
        """The agent of the user's program, or a new one; the name of its model; what to record of the request."""
        if (agent := self._agent) is not None:
            model = await asyncio.to_thread(lambda: agent.model)  # may look for a model, which blocks
            self._skip_recorded_replies(model)
            async with agent:
                yield agent, model.name, {}
            return
        request = self._request
        option = None if request.model_is_recorded else '--model'
        wanted = ModelRequest(name=request.model, option=option, overrides=request.overrides, download=request.download)
        model = await choose_model(wanted, self._settings, self._user, self.say)
        try:
            self._settings = await choose_sandbox(request, self._settings, self.say)
            self._skip_recorded_replies(model)
            output_type = OUTPUT_TYPES.get(request.output_type or '')
            meta = request.to_meta(model, self._settings)
            async with self._make_agent(model, output_type) as agent:
                yield agent, model.name, meta
        finally:
            await model.close()

    def _skip_recorded_replies(self, model: Model) -> None:
        if (script := script_of(model)) is not None and self._request.spec.is_resumption:
            script.skip(self._request.replies)

    def _start(self, agent: Agent, meta: Mapping[str, object]) -> Coroutine[object, object, Result]:
        """Run the agent, or resume its run."""
        spec = replace(self._request.spec, run_id=self._run, meta=meta, hooks=self._hooks(agent))
        self.is_recorded = spec.is_resumption
        return agent.run_spec(spec)

    def _hooks(self, agent: Agent) -> tuple[Hook, ...]:
        """Hooks for an agent of a user's program; an agent created here already has them."""
        return (self._watch, self.view) if agent is self._agent else ()

    def _make_agent(self, model: Model, output_type: object) -> Agent:
        workspace = self._request.workspace
        if workspace is not None and not self._request.spec.is_resumption:
            for file in project_instructions(workspace, model).files():
                self.say(f'instructions: {file}')
        return make_agent(
            self._request,
            self._settings,
            model,
            tools=[*self.tools, *([people_toolset()] if load_policy(None, model.traits).may_ask_people() else [])],
            hooks=[self._watch, self.view],
            approve=self._user.approve if self._user.is_present else None,  # without a user, the run pauses
            output_type=output_type,
            say=self.say,
        )

    def _watch(self, event: AgentEvent) -> None:
        match event:
            case StepStarted():
                self.is_recorded = self._settings.journal != OFF
            case StepFinished(finished=step) if not event.parent:
                self.steps += 1
                self.ran_code = self.ran_code or step.code is not None
            case _:
                pass

    def _print(self, result: Result[object], model: str) -> None:
        files = report.files_of(result, self._request.workspace, self._pictures)
        if self._request.as_json:
            print(json.dumps(report.result_to_json(result, model=model, files=files)), flush=True)
        elif result.ended == 'answer' and not (self.view.has_shown_answer and _is_one_terminal()):
            report.print_answer(result.output)
        if result.ended == 'question':
            if not self._user.is_present:  # a user who is present has seen the question
                say(f'the agent asks: {escape_controls(result.question or "")}')
            if self.is_recorded:
                say(f'answer with: {self.command("resume", " --answer TEXT")}')
        elif result.ended == 'approval':
            for line in report.pending_lines(result, self.command, with_code=self._request.quiet):
                print(line, file=sys.stderr, flush=True)
        elif result.ended != 'answer':
            resume = self.command('resume') if self.is_recorded else None
            say(report.limit_message(result, self._settings, self._request.output_type, resume))
        elif result.summary and not self._request.quiet:
            print(f'\n{escape_controls(result.summary)}', file=sys.stderr, flush=True)
        for line in report.file_lines(files):
            self.say(line)

    def say(self, text: str) -> None:
        """Tell the user something, unless only the answer is wanted."""
        if not self._request.quiet or text.startswith('SCRIPTED'):  # a script must never be taken for a model
            say(text)


def _is_one_terminal() -> bool:
    """Whether the answer and the progress go to the same place."""
    return sys.stdout.isatty() and sys.stderr.isatty()
