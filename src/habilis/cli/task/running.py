"""`habilis run`: one order, from the choice of the model to the exit code."""

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

from habilis.agent.agent import Agent
from habilis.agent.contract import Result, Step
from habilis.agent.hooks.harmless import neutral
from habilis.agent.options import AgentOptions
from habilis.cli.task import report
from habilis.cli.task.choosing import Wish, choose_model
from habilis.cli.task.interrupt import INTERRUPTED, run_interruptible
from habilis.cli.task.order import OUTPUT_TYPES, Order
from habilis.cli.task.person import Person
from habilis.cli.task.showing import View, read_settings, say
from habilis.core.errors import HabilisError, StoreUnavailable
from habilis.core.events import Event
from habilis.core.settings import Settings
from habilis.journal.copying import new_run_id
from habilis.journal.opening import OFF
from habilis.journal.refusals import LATER
from habilis.models.contract import Model
from habilis.models.scripted import ScriptedModel
from habilis.models.wrapper import WrapperModel
from habilis.tools import people_toolset


def run_order(order: Order, *, agent: Agent[Any] | None = None) -> int:
    """Do it, show it, and return the exit code. Raises `HabilisError`.

    An agent that a program has made does it instead of one that is made here.
    """
    settings = read_settings(order.load_settings)
    work = Work(order, settings, agent)
    try:
        return run_interruptible(work.do)
    except StoreUnavailable as error:
        work.view.make_room()
        if work.kept:
            raise
        msg = f'{str(error).removesuffix(LATER)}The run was not begun; --journal names another place, or off'
        raise StoreUnavailable(msg) from error
    except HabilisError:
        work.view.make_room()
        if work.kept and work.acted:
            say(f'what was done is kept; go on with: {work.command("resume")}')
        raise
    except KeyboardInterrupt:
        work.view.make_room(after_ctrl_c=True)
        say(report.interrupted(work.steps, order.workspace, work.command('resume') if work.kept else None))
        return INTERRUPTED


class Work:
    """One run in front of a person, or of a pipe."""

    def __init__(self, order: Order, settings: Settings, agent: Agent[Any] | None = None) -> None:
        self._order = order
        self._settings = settings
        self._agent = agent
        self._person = Person()
        self._run = order.going.run if order.going else order.run_id or new_run_id()
        self.view = View(quiet=order.quiet, header=False)
        self.steps = 0
        """Those that are done now."""

        self.acted = False
        """Whether code was run now."""

        self.kept = False
        """Whether the run can be gone on with."""

    def command(self, name: str, more: str = '') -> str:
        """A command of `habilis runs` about this run."""
        return report.command_line(name, self._run, f'{self._order.options}{more}')

    async def do(self) -> int:
        """Choose the model, do the task, show the answer."""
        try:
            if self._agent is not None:
                result, model = await self._with_agent(self._agent)
            else:
                result, model = await self._with_model()
        finally:
            self._person.leave()
        self._show(result, model)
        return report.exit_code(result)

    async def _with_agent(self, agent: Agent[Any]) -> tuple[Result[Any], str]:
        model = await asyncio.to_thread(lambda: agent.model)  # it may be looked for now
        self._prepare(model)
        async with agent:
            return await self._converse(agent, {}), model.name

    async def _with_model(self) -> tuple[Result[Any], str]:
        order = self._order
        option = None if order.named_before else '--model'
        wish = Wish(name=order.model, option=option, overrides=order.overrides, download=order.download)
        model = await choose_model(wish, self._settings, self._person, self._tell)
        try:
            self._prepare(model)
            kind = OUTPUT_TYPES.get(order.output_type or '')
            meta = order.recorded(order.model or self._settings.model or model.name)
            async with Agent[Any](model, output_type=kind, **self._options(model)) as agent:
                return await self._converse(agent, meta), model.name
        finally:
            await model.close()

    def _prepare(self, model: Model) -> None:
        """A script begins where it was left."""
        while isinstance(model, WrapperModel):
            model = model.inner
        if isinstance(model, ScriptedModel) and self._order.going is not None:
            model.skip(self._order.going.replies)

    async def _converse(self, agent: Agent[Any], meta: Mapping[str, object]) -> Result[Any]:
        """The run, and what the person at the terminal is asked on the way."""
        result = await self._begin(agent, meta)
        while result.ended == 'question' and self._person.there:
            answer = await self._person.answer(result.question or '')
            if answer is None:
                break
            result = await agent.resume(result.run_id, answer, hooks=self._hooks(agent))
        self._run = result.run_id
        return result

    async def _begin(self, agent: Agent[Any], meta: Mapping[str, object]) -> Result[Any]:
        order, going = self._order, self._order.going
        if going is None:
            return await agent.run(
                order.task,
                variables={} if order.data is None else {'stdin': order.data},
                run_id=self._run,
                session=order.session,
                meta=meta,
            )
        self.kept = True
        return await agent.resume(
            going.run,
            going.answer,
            max_steps=going.max_steps,
            on_change=going.on_change,
            hooks=self._hooks(agent),
        )

    def _hooks(self, agent: Agent[Any]) -> 'tuple[Any, ...]':
        """For an agent that was not made here."""
        return (self._watch, self.view) if agent is self._agent else ()

    def _options(self, model: Model) -> AgentOptions:
        options = AgentOptions(
            workspace=self._order.workspace,
            settings=self._settings,
            hooks=[self._watch, self.view],
            approve=self._person.approve if self._person.there else None,  # the run waits for one who is there
        )
        if not model.name.startswith('local:'):  # so small a model would rather ask than work
            options['tools'] = [people_toolset()]
        return options

    def _watch(self, event: Event) -> None:
        if event.kind == 'step_started':
            self.kept = self._settings.journal != OFF
        elif event.kind == 'step_finished':
            self.steps += 1
            self.acted = self.acted or (isinstance(event.data, Step) and event.data.code is not None)

    def _show(self, result: Result[Any], model: str) -> None:
        if self._order.as_json:
            print(json.dumps(report.to_json(result, model=model)), flush=True)
        elif result.ended == 'answer':
            text = report.answer_text(result.output)
            print(neutral(text) if sys.stdout.isatty() else text, flush=True)
        if result.ended == 'question':
            if not self._person.there:  # who has not answered has seen it
                say(f'the agent asks: {neutral(result.question or "")}')
            self._advise('answer with', self.command('resume', ' --answer TEXT'))
        elif result.ended == 'approval':
            for line in report.asked(result, self.command):
                say(line)
        elif result.ended != 'answer':
            resume = self.command('resume') if self.kept else None
            say(report.stopped(result, self._settings, self._order.output_type, resume))
        elif result.summary and not self._order.quiet:
            print(f'\n{neutral(result.summary)}', file=sys.stderr, flush=True)

    def _advise(self, what: str, command: str) -> None:
        if self.kept:
            say(f'{what}: {command}')

    def _tell(self, text: str) -> None:
        if not self._order.quiet or text.startswith('SCRIPTED'):  # a script is never taken for a model
            say(text)
