"""`habilis run`: one order, from the choice of the model to the exit code."""

import json
import sys
from typing import Any

from habilis.agent.agent import Agent
from habilis.agent.contract import Result
from habilis.agent.hooks.harmless import neutral
from habilis.agent.options import AgentOptions
from habilis.cli.task import report
from habilis.cli.task.choosing import Wish, choose_model
from habilis.cli.task.interrupt import INTERRUPTED, run_interruptible
from habilis.cli.task.order import OUTPUT_TYPES, Order
from habilis.cli.task.person import Person
from habilis.cli.task.showing import View, prepare_terminal, say
from habilis.core.errors import HabilisError
from habilis.core.events import Event
from habilis.core.settings import Settings
from habilis.models.contract import Model
from habilis.tools import people_toolset


def run_order(order: Order) -> int:
    """Do it, show it, and return the exit code. Raises `HabilisError`."""
    settings = order.load_settings()
    prepare_terminal(settings)
    work = Work(order, settings)
    try:
        return run_interruptible(work.do)
    except HabilisError:
        work.view.make_room()
        raise
    except KeyboardInterrupt:
        work.view.make_room(after_ctrl_c=True)
        say(report.interrupted(work.steps, order.workspace))
        return INTERRUPTED


class Work:
    """One run in front of a person, or of a pipe."""

    def __init__(self, order: Order, settings: Settings) -> None:
        self._order = order
        self._settings = settings
        self._person = Person()
        self.view = View(quiet=order.quiet, header=False)
        self.steps = 0
        """Those that are done."""

    async def do(self) -> int:
        """Choose the model, do the task, show the answer."""
        order = self._order
        wish = Wish(name=order.model, overrides=order.overrides, download=order.download)
        try:
            model = await choose_model(wish, self._settings, self._person, self._tell)
            try:
                result = await self._run(model)
            finally:
                await model.close()
        finally:
            self._person.leave()
        self._show(result, model)
        return report.exit_code(result)

    async def _run(self, model: Model) -> Result[Any]:
        order = self._order
        kind = OUTPUT_TYPES.get(order.output_type or '')
        async with Agent[Any](model, output_type=kind, **self._options(model)) as agent:
            result = await agent.run(order.task, variables={} if order.data is None else {'stdin': order.data})
            while result.ended == 'question' and self._person.there:
                answer = await self._person.answer(result.question or '')
                if answer is None:
                    break
                result = await agent.resume(result.run_id, answer)
            return result

    def _options(self, model: Model) -> AgentOptions:
        options = AgentOptions(
            workspace=self._order.workspace,
            settings=self._settings,
            hooks=[self._count, self.view],
            approve=self._person.approve,
        )
        if not model.name.startswith('local:'):  # so small a model would rather ask than work
            options['tools'] = [people_toolset()]
        return options

    def _count(self, event: Event) -> None:
        if event.kind == 'step_finished':
            self.steps += 1

    def _show(self, result: Result[Any], model: Model) -> None:
        if self._order.as_json:
            print(json.dumps(report.to_json(result, model=model.name)), flush=True)
        elif result.ended == 'answer':
            text = report.answer_text(result.output)
            print(neutral(text) if sys.stdout.isatty() else text, flush=True)
        if result.ended == 'question':
            say(f'the agent asks: {neutral(result.question or "")}')
        elif result.ended != 'answer':
            say(report.stopped(result, self._settings, self._order.output_type))
        elif result.summary and not self._order.quiet:
            print(f'\n{neutral(result.summary)}', file=sys.stderr, flush=True)

    def _tell(self, text: str) -> None:
        if not self._order.quiet or text.startswith('SCRIPTED'):  # a script is never taken for a model
            say(text)
