"""Choose the models, run the demos and print the results."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from textwrap import indent

from habilis.agent.hooks.status import STARTING
from habilis.cli.demo.scenarios import DemoModels, DemoResult, run_demo
from habilis.cli.demo.tasks import DEMOS, Demo
from habilis.cli.interrupt import INTERRUPTED, run_interruptible
from habilis.cli.model_choice import ModelRequest, choose_model
from habilis.cli.run.report import count_steps
from habilis.cli.run_view import RunDisplay
from habilis.cli.settings import read_settings
from habilis.cli.streams import say
from habilis.cli.terminal_user import TerminalUser
from habilis.core.errors import HabilisError, NoModel
from habilis.core.settings import Settings
from habilis.core.status_line import current_status
from habilis.models.contract import Model
from habilis.models.discovery import discover_all
from habilis.models.loader import load_model

LABEL = 'SCRIPTED'


@dataclass(frozen=True, kw_only=True)
class DemoRequest:
    """Arguments of `habilis demo`."""

    numbers: Sequence[int]
    model: str | None = None
    planner: str | None = None
    scripted: bool = False
    quiet: bool = False
    download: bool = False

    @property
    def demos(self) -> list[Demo]:
        """The selected demos."""
        return [demo for demo in DEMOS if demo.number in self.numbers]


def run_demos(request: DemoRequest) -> int:
    """Run the demos and return the exit code."""
    settings = read_settings()
    status = current_status()
    if settings.status and not request.quiet:
        status.start(STARTING)
    runner = DemoRunner(request, settings)
    try:
        return 0 if run_interruptible(runner.run_all) else 1
    except HabilisError:
        runner.view.end_line()
        raise
    except KeyboardInterrupt:
        status.stop()
        runner.view.end_line()
        say(f'interrupted after {runner.done} of {len(request.demos)} demos')
        return INTERRUPTED
    finally:
        status.stop()


class DemoRunner:
    """Runs one demo after the other."""

    def __init__(self, request: DemoRequest, settings: Settings) -> None:
        self._request = request
        self._settings = settings
        self._user = TerminalUser()
        self.view = RunDisplay(quiet=request.quiet)
        self.done = 0
        """Number of finished demos."""

    async def run_all(self) -> bool:
        """Run the demos. True if all results are correct."""
        correct = True
        async with AsyncExitStack() as models:
            models.callback(self._user.close)
            chosen = None if self._request.scripted else await self._choose_models(models)
            for demo in self._request.demos:
                print(self._label(f'Demo {demo.number}: {demo.title}'), flush=True)
                print(indent(demo.task, '  '), flush=True)
                result = await run_demo(demo, chosen or self._scripted_models(demo))
                print(self._label(_result_line(demo, result)), flush=True)
                correct = correct and result.problem is None
                self.done += 1
        return correct

    def _label(self, text: str) -> str:
        return f'[{LABEL}] {text}' if self._request.scripted else text

    # Models -----------------------------------------------------------------------------------------------------------

    def _scripted_models(self, demo: Demo) -> DemoModels:
        from habilis.models.scripted import ScriptedModel

        model = ScriptedModel(demo.scripted, name=f'scripted:demo-{demo.number}')
        planner = ScriptedModel(demo.scripted_plan, name=f'scripted:demo-{demo.number}-planner')
        return DemoModels(model=model, planner=planner, settings=self._settings, hooks=[self.view])

    async def _choose_models(self, models: AsyncExitStack) -> DemoModels:
        request = self._request
        wanted = ModelRequest(name=request.model, option='--model', download=request.download)
        try:
            model = await choose_model(wanted, self._settings, self._user, self._say)
        except NoModel as error:
            msg = f'{error}. `habilis demo --scripted` needs no model'
            raise NoModel(msg) from error
        models.push_async_callback(model.close)
        planner = model
        if any(demo.scripted_plan for demo in request.demos):
            planner = await self._choose_planner(model, wanted)
        if planner is not model:
            models.push_async_callback(planner.close)
        return DemoModels(model=model, planner=planner, settings=self._settings, hooks=[self.view])

    async def _choose_planner(self, model: Model, wanted: ModelRequest) -> Model:
        """The requested planner, another available model, or else the same model."""
        if self._request.planner is not None:
            wanted = replace(wanted, name=self._request.planner, option='--planner')
            return await choose_model(wanted, self._settings, self._user, self._say)
        if self._request.model is None:
            for choice in await discover_all(self._settings):
                other = load_model(choice.config, settings=self._settings) if choice.ready else model
                if other.name != model.name and not other.traits.scripted:
                    self._say(f'planner: {other.name} ({choice.reason})')
                    return other
        self._say(f'{model.name} is also the planner of demo 3; name another model with --planner')
        return model

    def _say(self, text: str) -> None:
        if not self._request.quiet:
            say(text)


def _result_line(demo: Demo, result: DemoResult) -> str:
    facts = f'{count_steps(result.steps)}, {result.seconds:.1f} s'
    if result.usage.cost:
        facts += f', ${result.usage.cost:.4f}'
    if result.problem is None:
        return f'Demo {demo.number}: correct: {result.output} ({facts})\n'
    return f'Demo {demo.number}: incorrect: {result.output!r}; {result.problem} ({facts})\n'
