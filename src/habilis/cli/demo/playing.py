"""`habilis demo`: choose the models, play, judge."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from textwrap import indent

from habilis.cli.demo.stages import Cast, Played, play
from habilis.cli.demo.tasks import DEMOS, Demo
from habilis.cli.task.choosing import Wish, choose_model
from habilis.cli.task.interrupt import INTERRUPTED, run_interruptible
from habilis.cli.task.person import Person
from habilis.cli.task.showing import View, read_settings, say
from habilis.core.errors import HabilisError, NoModel
from habilis.core.settings import Settings
from habilis.models.contract import Model
from habilis.models.discovery import discover_all
from habilis.models.loader import load_model

LABEL = 'SCRIPTED'


@dataclass(frozen=True, kw_only=True)
class Program:
    """What is played, and by whom."""

    numbers: Sequence[int]
    model: str | None = None
    planner: str | None = None
    scripted: bool = False
    quiet: bool = False
    download: bool = False

    @property
    def demos(self) -> list[Demo]:
        """Those to play."""
        return [demo for demo in DEMOS if demo.number in self.numbers]


def play_program(program: Program) -> int:
    """Play the demos; return the exit code."""
    settings = read_settings()
    theatre = Theatre(program, settings)
    try:
        return 0 if run_interruptible(theatre.play_all) else 1
    except HabilisError:
        theatre.view.make_room()
        raise
    except KeyboardInterrupt:
        theatre.view.make_room(after_ctrl_c=True)
        say(f'stopped after {theatre.done} of {len(program.demos)} demos')
        return INTERRUPTED


class Theatre:
    """Plays one demo after the other."""

    def __init__(self, program: Program, settings: Settings) -> None:
        self._program = program
        self._settings = settings
        self._person = Person()
        self.view = View(quiet=program.quiet)
        self.done = 0
        """Demos that are over."""

    async def play_all(self) -> bool:
        """Whether all were right."""
        right = True
        async with AsyncExitStack() as models:
            models.callback(self._person.leave)
            cast = None if self._program.scripted else await self._find_cast(models)
            for demo in self._program.demos:
                print(self._titled(f'Demo {demo.number}: {demo.title}'), flush=True)
                print(indent(demo.task, '  '), flush=True)
                played = await play(demo, cast or self._scripted_cast(demo))
                print(self._titled(_verdict(demo, played)), flush=True)
                right = right and played.wrong is None
                self.done += 1
        return right

    def _titled(self, text: str) -> str:
        return f'[{LABEL}] {text}' if self._program.scripted else text

    # Who plays --------------------------------------------------------------------------------------------------------

    def _scripted_cast(self, demo: Demo) -> Cast:
        from habilis.models.scripted import ScriptedModel

        model = ScriptedModel(demo.scripted, name=f'scripted:demo-{demo.number}')
        planner = ScriptedModel(demo.scripted_plan, name=f'scripted:demo-{demo.number}-planner')
        return Cast(model=model, planner=planner, settings=self._settings, hooks=[self.view])

    async def _find_cast(self, models: AsyncExitStack) -> Cast:
        program = self._program
        wish = Wish(name=program.model, option='--model', download=program.download)
        try:
            model = await choose_model(wish, self._settings, self._person, self._tell)
        except NoModel as error:
            msg = f'{error}. `habilis demo --scripted` plays the demos from a script, without a model'
            raise NoModel(msg) from error
        models.push_async_callback(model.close)
        planner = model
        if any(demo.scripted_plan for demo in program.demos):
            planner = await self._second(model, wish)
        if planner is not model:
            models.push_async_callback(planner.close)
        return Cast(model=model, planner=planner, settings=self._settings, hooks=[self.view])

    async def _second(self, model: Model, wish: Wish) -> Model:
        """The planner: the one that was named, another that is there, or else the same."""
        if self._program.planner is not None:
            wish = replace(wish, name=self._program.planner, option='--planner')
            return await choose_model(wish, self._settings, self._person, self._tell)
        if self._program.model is None:
            for choice in await discover_all(self._settings):
                other = load_model(choice.config, settings=self._settings) if choice.ready else model
                if other.name != model.name and not other.traits.scripted:
                    self._tell(f'{other.name} plans ({choice.reason})')
                    return other
        self._tell(f'{model.name} plays both parts of demo 3; --planner names a second model')
        return model

    def _tell(self, text: str) -> None:
        if not self._program.quiet:
            say(text)


def _verdict(demo: Demo, played: Played) -> str:
    facts = f'{played.steps} {"step" if played.steps == 1 else "steps"}, {played.seconds:.1f} s'
    if played.usage.cost:
        facts += f', ${played.usage.cost:.4f}'
    if played.wrong is None:
        return f'Demo {demo.number}: right: {played.output} ({facts})\n'
    return f'Demo {demo.number}: wrong: {played.output!r}; {played.wrong} ({facts})\n'
