"""`habilis runs show`: one run, step by step, from its records alone."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict

from habilis.agent.hooks.harmless import one_line
from habilis.agent.hooks.questions import is_question
from habilis.agent.hooks.tokens import money
from habilis.agent.parsing.parse import parse_reply
from habilis.agent.trajectory import Story, Turn, stories
from habilis.cli.runs.desk import Desk
from habilis.cli.runs.listing import told_damage
from habilis.cli.runs.printing import COLOURS, Page, moment
from habilis.cli.task.report import answer_text
from habilis.core.codec import Json, dump
from habilis.core.errors import JournalError
from habilis.flows.contract import StepStatus
from habilis.flows.status import flow_status
from habilis.journal.questions import open_questions
from habilis.journal.runs import RunView, TolerantStore
from habilis.models.contract import Usage

LONG = 4000
"""Letters of what code has printed that are shown; `--step` shows all."""

Question = tuple[str, Json]


async def show_run(desk: Desk, run: str, step: str | None, *, as_json: bool) -> int:
    """Show a run, or one step of it; the exit code."""
    reading = await desk.read(run)
    told = await stories(reading)
    whole = TolerantStore(desk.store)
    asked = await open_questions(whole, run, user=desk.user)
    steps = await flow_status(whole, run, user=desk.user) if reading.info.kind == 'flow' else []
    if step is not None:
        await _show_step(reading, told, step, as_json=as_json)
    elif as_json:
        print(json.dumps(_as_json(reading, told, steps, asked)))
    else:
        page = Page()
        _show_head(page, reading, told)
        _show_tree(page, steps)
        for story in told:
            _show_story(page, story, alone=reading.info.kind == 'agent')
        for line in how_to_answer(desk, reading, asked):
            page.line(line, 'yellow')
    return told_damage(reading)


# On a page ------------------------------------------------------------------------------------------------------------


def _show_head(page: Page, reading: RunView, told: Sequence[Story]) -> None:
    info = reading.info
    usage = sum((story.usage for story in told), Usage())
    facts = [reading.run, reading.state, f'{info.kind} {info.name}', moment(info.created)]
    if told:
        steps = sum(len(story.turns) for story in told)
        facts += [f'{steps} {"step" if steps == 1 else "steps"}', f'{sum(story.seconds for story in told):.1f} s']
    if usage.tokens:
        facts.append(f'{usage.tokens:,} tokens')
    if usage.cost:
        facts.append(money(usage.cost))
    page.line(' · '.join(one_line(fact, 100) for fact in facts), f'bold {COLOURS.get(reading.state, "")}'.strip())
    for name, value in (('session', info.session), ('user', info.user), ('forked from', info.parent)):
        if value:
            page.line(f'  {name}: {one_line(value, 100)}', 'dim')
    if reading.score is not None:
        page.line(f'  score: {reading.score:g}', 'dim')
    if not told:
        page.block('given', info.title)
    if info.error:
        page.block('error', info.error, 'red')


def _show_tree(page: Page, steps: Sequence[StepStatus]) -> None:
    for step in steps:
        deep = '  ' * step.path.count('/')
        seconds = '' if step.seconds is None else f' · {step.seconds:.1f} s'
        error = f' · {one_line(step.error, 200)}' if step.error else ''
        name = one_line(step.path.rpartition('/')[2], 100)
        page.line(f'{deep}{name}: {step.state}{seconds}{error}', COLOURS.get(step.state, ''))


def _show_story(page: Page, story: Story, *, alone: bool) -> None:
    page.line()
    if not alone:
        page.line(story.path, 'bold')
    page.block('task', story.inputs.task)
    for turn in story.turns:
        page.line()
        show_turn(page, turn)
    if story.result is not None:
        page.line()
        page.block('answer', answer_text(story.result.output), 'bold')
        page.block('summary', story.result.summary or '')


def show_turn(page: Page, turn: Turn, *, whole: bool = False) -> None:
    """One step: what was said, run, printed, called, and what went wrong."""
    page.line(f'step {turn.number} · {turn.seconds:.1f} s', 'bold')
    for text in turn.told:
        page.block('you said', text)
    if turn.reply is not None:
        page.block('thinking', turn.reply.thinking if whole else '', 'dim')
        page.block('reply', turn.reply.text if whole else parse_reply(turn.reply.text).prose)
    for cell in turn.cells:
        page.block('code', cell.code, 'cyan')
        shown = f'{cell.cell.stdout}{cell.cell.stderr}{cell.cell.text or ""}'
        page.block('output', shown if whole else cut(shown))
        if cell.cell.error is not None and not is_question(cell.cell.error.message):
            page.block('error', cell.cell.error.traceback if whole else str(cell.cell.error), 'red')
    for call in turn.calls:
        arguments = '…' if call.arguments is None else ', '.join(f'{n}={v!r}' for n, v in call.arguments.items())
        end = 'asked' if is_question(call.error) else f'failed: {call.error}' if call.error else call.result
        page.line(f'  call  {one_line(f"{call.tool}({arguments}) → {end}", 300)}  ({call.decision})')
    if whole or not turn.cells:
        page.block('observation', turn.observation or '')
    page.block('error', turn.error, 'red')


def cut(text: str) -> str:
    """The beginning and the end of something long."""
    if len(text) <= LONG:
        return text
    half = LONG // 2
    return f'{text[:half]}\n… {len(text) - LONG:,} more characters; --step shows them …\n{text[-half:]}'


async def _show_step(reading: RunView, told: Sequence[Story], step: str, *, as_json: bool) -> None:
    turns = [turn for story in told for turn in story.turns if step in {str(turn.number), turn.path}]
    if len(turns) > 1:
        paths = ', '.join(turn.path for turn in turns)
        msg = f'{reading.run} has several agents with a step {step}; name its path: {paths}'
        raise JournalError(msg)
    if turns and not as_json:
        show_turn(Page(), turns[0], whole=True)
        return
    path = turns[0].path if turns else step
    entry = reading.index.find(path)
    if entry is None:
        known = f'it has {len(told[0].turns)}' if told else f'`habilis runs events {reading.run}` shows its paths'
        msg = f'{reading.run} has no step {step}; {known}'
        raise JournalError(msg)
    if turns:
        print(json.dumps(_turn(turns[0])))
        return
    records = [record for record in (entry.opened, entry.started, entry.asked, entry.answered, entry.end) if record]
    values = [{'kind': each.kind, 'value': await reading.value_or_none(each)} for each in records]
    print(json.dumps(values) if as_json else '\n'.join(f'{each["kind"]}: {dump(each["value"])}' for each in values))


# What people are asked ------------------------------------------------------------------------------------------------


def how_to_answer(desk: Desk, reading: RunView, asked: Sequence[Question]) -> list[str]:
    """What is asked, and the command that answers it."""
    run, lines = reading.run, list[str]()
    question = reading.ended.get('question')
    if isinstance(question, str) and reading.state == 'waiting':
        lines += ['', f'it asks: {question}', f'  answer with: {desk.command("resume", run, " --answer TEXT")}']
    for path, request in asked:
        fields = request if isinstance(request, dict) else {}
        which = f' --path {shlex.quote(path)}' if len(asked) > 1 else ''
        lines += ['', f'it asks: {fields.get("question") or dump(request)}']
        if fields.get('kind') == 'approval':
            lines.append(f'  {one_line(dump(fields.get("arguments") or {}), 300)}')
            lines += [line for line in str(fields.get('diff') or '').splitlines() if line]
            lines.append(f'  go on with: {desk.command("approve", run, which)}  or: {desk.command("deny", run, which)}')
        elif fields.get('kind') == 'uncertain':
            again = desk.command('answer', run, which, value=' \'{"again": true}\'')
            lines.append(f'  do it now: {again}')
            done = desk.command('answer', run, which, value=' \'{"value": …}\'')
            lines.append(f'  or, if it was done, say what came of it: {done}')
        else:
            lines.append(f'  answer with: {desk.command("answer", run, which, value=" JSON")}')
    if not lines and reading.state in {'interrupted', 'stopped', 'failed'}:
        lines += ['', f'{reading.state}; go on with: {desk.command("resume", run)}']
    return lines


# As JSON --------------------------------------------------------------------------------------------------------------


def _as_json(
    reading: RunView, told: Sequence[Story], steps: Sequence[StepStatus], asked: Sequence[Question]
) -> dict[str, Json]:
    info: dict[str, Json] = asdict(reading.info)
    agents: list[Json] = [
        {
            'path': story.path,
            'task': story.inputs.task,
            'model': story.inputs.model,
            'steps': [_turn(turn) for turn in story.turns],
            'usage': asdict(story.usage),
            'answer': None if story.result is None else answer_text(story.result.output),
        }
        for story in told
    ]
    return {
        **info,
        'status': reading.state,
        'agents': agents,
        'steps': [asdict(step) for step in steps],
        'question': reading.ended.get('question') if reading.state == 'waiting' else None,
        'questions': [{'path': path, 'request': request} for path, request in asked],
        'score': reading.score,
        'damage': [str(error) for error in reading.damage],
    }


def _turn(turn: Turn) -> dict[str, Json]:
    cell = turn.cells[-1].cell if turn.cells else None
    error = cell.error if cell else None
    return {
        'step': turn.number,
        'path': turn.path,
        'at': turn.at,
        'told': list(turn.told),
        'reply': turn.reply.text if turn.reply is not None else None,
        'code': turn.code,
        'stdout': ''.join(each.cell.stdout for each in turn.cells),
        'value': cell.text if cell else None,
        'observation': turn.observation,
        'error': turn.error or (None if error is None or is_question(error.message) else str(error)),
        'calls': [call.as_json() for call in turn.calls],
        'seconds': turn.seconds,
    }
