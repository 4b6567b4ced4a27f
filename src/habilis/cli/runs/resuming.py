"""Going on with runs: with the order of `habilis run` that made them, or with the program that did."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import typer

from habilis.agent.agent import Agent
from habilis.agent.durable import Inputs
from habilis.agent.hooks.harmless import neutral
from habilis.agent.recording import ASK
from habilis.agent.trajectory import stories
from habilis.cli.runs.desk import Desk, at_desk
from habilis.cli.runs.programs import load_app, resume_flow
from habilis.cli.task.order import Again, Going, Order
from habilis.cli.task.person import Person
from habilis.cli.task.report import QUESTION, WRONG_USAGE
from habilis.cli.task.running import run_order
from habilis.cli.task.showing import say
from habilis.core.codec import Json
from habilis.core.errors import JournalError
from habilis.journal import OnChange
from habilis.journal.index import name_of
from habilis.journal.questions import answer_run
from habilis.journal.runs import RunView


@dataclass(frozen=True, kw_only=True)
class Wish:
    """How a run is to be gone on with."""

    run: str
    where: str | None = None
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
    def place(self) -> dict[str, object]:
        """Settings that say where the run is, and how far it may go."""
        return {'journal': self.where, 'user': self.user, 'max_steps': self.max_steps}


@dataclass(frozen=True, kw_only=True)
class Known:
    """What has to be known of a run before it goes on."""

    reading: RunView
    inputs: Inputs | None
    """None for a flow."""

    replies: int
    question: str | None
    resume: Callable[[str], str]
    """The command, for people, with more options."""


def resume_run(wish: Wish) -> int:
    """Go on with a run in front of a person, or of a pipe; the exit code. Raises `HabilisError`."""
    known = _look(wish)
    if wish.answer is not None and known.reading.state == 'done':
        say(f'{wish.run} has ended with its answer: --answer was not used. Without it, the answer is shown again')
        return WRONG_USAGE
    if known.question is not None and wish.answer is None:
        person = Person()
        answer = person.ask(f'\n{neutral(known.question)}\n> ')
        if answer is None:
            if not person.there:
                say(f'the agent asks: {neutral(known.question)}')
            say(f'answer with: {known.resume(" --answer TEXT")}')
            return QUESTION
        wish = replace(wish, answer=answer)
    going = Going(
        run=wish.run,
        answer=wish.answer,
        max_steps=wish.max_steps,
        on_change=wish.on_change,
        replies=known.replies,
    )
    if wish.app is not None:
        return _with_app(wish, wish.app, known, going)
    inputs = known.inputs
    again = Again(
        model=wish.model,
        workspace=wish.workspace,
        trusted=not known.reading.imported,
        settings=wish.place,
        as_json=wish.as_json,
        quiet=wish.quiet,
    )
    order = None if inputs is None else Order.again(inputs.task, inputs.meta, going, **again)
    if order is None:
        raise JournalError(_made_by_a_program(known))
    return run_order(order)


def _with_app(wish: Wish, app: str, known: Known, going: Going) -> int:
    made = load_app(app, where=wish.where, user=wish.user)
    if isinstance(made, Agent) and known.inputs is not None:
        if wish.model is not None or wish.workspace is not None:
            msg = 'the program has its own model and workspace; leave out --model and --workspace'
            raise typer.BadParameter(msg, param_hint='--app')
        order = Order(task=known.inputs.task, settings=wish.place, as_json=wish.as_json, quiet=wish.quiet, going=going)
        return run_order(order, agent=made)
    if isinstance(made, Agent) or known.inputs is not None:
        kind = known.reading.info.kind
        msg = f'{wish.run} is the run of {"an agent" if kind == "agent" else "a flow"}, and {app} is not one'
        raise typer.BadParameter(msg, param_hint='--app')
    _refuse_for_flows(wish)
    return resume_flow(
        made,
        wish.run,
        where=wish.where,
        user=wish.user,
        on_change=wish.on_change,
        command=known.resume(''),
        as_json=wish.as_json,
        quiet=wish.quiet,
    )


def _refuse_for_flows(wish: Wish) -> None:
    """What only an agent could use is not left out without a word."""
    if wish.answer is not None:
        msg = f'{wish.run} is the run of a flow, which is answered with `habilis runs answer`'
        raise typer.BadParameter(msg, param_hint='--answer')
    given = {'--model': wish.model, '--workspace': wish.workspace, '--max-steps': wish.max_steps}
    for name, value in given.items():
        if value is not None:
            msg = f'{wish.run} is the run of a flow, which has its own; leave out {name}'
            raise typer.BadParameter(msg, param_hint=name)


def _look(wish: Wish) -> Known:
    found: list[Known] = []

    async def look(desk: Desk) -> int:
        reading = await desk.read(wish.run)
        inputs = None
        if reading.info.kind == 'agent':
            told = await stories(reading)
            inputs = told[0].inputs if told else None
            if inputs is None:
                msg = f'{wish.run} ended before it began: what it was asked is not in its record; start another'
                raise reading.damage[0] if reading.damage else JournalError(msg)
        ended = reading.ended
        asked = ended.get('question') if ended.get('ended') == 'question' else None
        replies = [path for path, entry in reading.steps() if entry.end is not None and entry.end.kind == 'done']
        known = Known(
            reading=reading,
            inputs=inputs,
            replies=sum(name_of(path) == ASK for path in replies),
            question=asked if isinstance(asked, str) else None,
            resume=partial(desk.command, 'resume', wish.run),
        )
        found.append(known)
        return 0

    at_desk(wish.where, wish.user, look)
    return found[0]


def _made_by_a_program(known: Known) -> str:
    info = known.reading.info
    if info.kind == 'flow':
        name = info.name.rpartition(':')[2]
        return (
            f'{info.run} is the run of a flow, whose code this command does not know; name it: '
            f'{known.resume(f" --app {info.name}")}, or in Python: await {name}.resume({info.run!r})'
        )
    return (
        f'{info.run} was made by a program, whose tools this command does not know; name its agent: '
        f'{known.resume(" --app MODULE:NAME")}, or in Python: await agent.resume({info.run!r})'
    )


# Answers --------------------------------------------------------------------------------------------------------------


def read_answer(text: str) -> Json:
    """JSON; what is none is text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if text[:1] in {'{', '[', '"'}:
            msg = f'{text[:50]} is not JSON; put quotes around it: \'{{"again": true}}\''
            raise typer.BadParameter(msg, param_hint='JSON') from None
        return text


def refusal(reason: str | None) -> Json:
    """A no, perhaps with why."""
    return False if reason is None else {'approved': False, 'reason': reason}


def answer_and_resume(wish: Wish, answer: Json, *, path: str | None, resume: bool) -> int:
    """Write an answer down, and go on with the run if nothing else is asked."""
    asked = path is None and not isinstance(answer, bool) and _look(wish).question is not None
    if asked:
        if not resume:
            msg = 'what the agent asks is answered by going on with the run; leave out --no-resume'
            raise typer.BadParameter(msg, param_hint='--no-resume')
        return resume_run(replace(wish, answer=answer if isinstance(answer, str) else json.dumps(answer)))

    async def write(desk: Desk) -> int:
        left = await answer_run(desk.store, wish.run, answer, path=path, user=desk.user)
        if left:
            say(f'answered; {wish.run} asks {len(left)} more: {desk.command("show", wish.run)}')
        elif not resume:
            say(f'answered; go on with: {desk.command("resume", wish.run)}')
        return len(left)

    left = at_desk(wish.where, wish.user, write)
    return resume_run(wish) if resume and not left else 0
