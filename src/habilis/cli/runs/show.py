"""`habilis runs show`: one run step by step, read from its records."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict

from habilis.agent.durable.audit import call_as_json
from habilis.agent.durable.trajectory import Trajectory, Turn, read_trajectories
from habilis.agent.hooks.questions import is_question
from habilis.agent.hooks.sanitize import one_line
from habilis.agent.hooks.tokens import format_cost
from habilis.agent.parsing.replies import parse_reply
from habilis.cli.printing import COLOURS, Page, arguments_text, format_time
from habilis.cli.run.report import answer_text, count_steps
from habilis.cli.runs.journal import JournalAccess, report_damage, with_journal
from habilis.core.codec import Json, dump
from habilis.core.errors import JournalError
from habilis.flows.contract import StepStatus
from habilis.flows.status import flow_status
from habilis.journal.questions import open_questions
from habilis.journal.runs import RunView, TolerantStore
from habilis.models.contract import Usage

MAX_OUTPUT_CHARS = 4000
"""Max characters of a cell's output shown; `--step` shows all."""

Question = tuple[str, Json]


def show_run(run: str, step: str | None, *, as_json: bool, journal: str | None, user: str | None) -> int:
    """Print a run, or one step of it."""
    return with_journal(journal, user, lambda access: _show_run(access, run, step, as_json=as_json))


async def _show_run(access: JournalAccess, run: str, step: str | None, *, as_json: bool) -> int:
    reading = await access.read(run)
    agents = await read_trajectories(reading)
    readable = TolerantStore(access.store)
    questions = await open_questions(readable, run, user=access.user)
    steps = await flow_status(readable, run, user=access.user) if reading.info.kind == 'flow' else []
    if step is not None:
        await _show_step(reading, agents, step, as_json=as_json)
    elif as_json:
        print(json.dumps(_to_json(reading, agents, steps, questions)))
    else:
        page = Page()
        _show_head(page, reading, agents)
        _show_tree(page, steps)
        for trajectory in agents:
            _show_trajectory(page, trajectory, is_only=reading.info.kind == 'agent')
        for line in _answer_lines(access, reading, questions):
            page.line(line, 'yellow')
    return report_damage(reading)


# As text --------------------------------------------------------------------------------------------------------------


def _show_head(page: Page, reading: RunView, agents: Sequence[Trajectory]) -> None:
    info = reading.info
    usage = sum((trajectory.usage for trajectory in agents), Usage())
    facts = [reading.run, reading.state, f'{info.kind} {info.name}', format_time(info.created)]
    if agents:
        steps = count_steps(sum(len(trajectory.turns) for trajectory in agents))
        facts += [steps, f'{sum(trajectory.seconds for trajectory in agents):.1f} s']
    if usage.tokens:
        facts.append(f'{usage.tokens:,} tokens')
    if usage.cost:
        facts.append(format_cost(usage.cost))
    page.line(' · '.join(one_line(fact, 100) for fact in facts), f'bold {COLOURS.get(reading.state, "")}'.strip())
    for name, value in (('session', info.session), ('user', info.user), ('forked from', info.parent)):
        if value:
            page.line(f'  {name}: {one_line(value, 100)}', 'dim')
    if reading.score is not None:
        page.line(f'  score: {reading.score:g}', 'dim')
    if not agents:
        page.block('input', info.title)
    if info.error:
        page.block('error', info.error, 'red')


def _show_tree(page: Page, steps: Sequence[StepStatus]) -> None:
    for step in steps:
        indent = '  ' * step.path.count('/')
        seconds = '' if step.seconds is None else f' · {step.seconds:.1f} s'
        error = f' · {one_line(step.error, 200)}' if step.error else ''
        name = one_line(step.path.rpartition('/')[2], 100)
        page.line(f'{indent}{name}: {step.state}{seconds}{error}', COLOURS.get(step.state, ''))


def _show_trajectory(page: Page, trajectory: Trajectory, *, is_only: bool) -> None:
    page.line()
    if not is_only:
        page.line(trajectory.path, 'bold')
    page.block('task', trajectory.inputs.task)
    for turn in trajectory.turns:
        page.line()
        _show_turn(page, turn)
    if trajectory.result is not None:
        page.line()
        page.block('answer', answer_text(trajectory.result.output), 'bold')
        page.block('summary', trajectory.result.summary or '')


def _show_turn(page: Page, turn: Turn, *, full: bool = False) -> None:
    """One step: messages, reply, code, output, tool calls and errors."""
    page.line(f'step {turn.number} · {turn.seconds:.1f} s', 'bold')
    for text in turn.user_messages:
        page.block('message', text)
    if turn.reply is not None:
        page.block('thinking', turn.reply.thinking if full else '', 'dim')
        page.block('reply', turn.reply.text if full else parse_reply(turn.reply.text).prose)
    for cell in turn.cells:
        page.block('code', cell.code, 'cyan')
        shown = f'{cell.cell.stdout}{cell.cell.stderr}{cell.cell.text or ""}'
        page.block('output', shown if full else _truncate(shown))
        if cell.cell.error is not None and not is_question(cell.cell.error.message):
            page.block('error', cell.cell.error.traceback if full else str(cell.cell.error), 'red')
    page.block('code', turn.unfinished, 'cyan')
    for call in turn.calls:
        arguments = '…' if call.arguments is None else arguments_text(call.arguments)
        end = 'asked' if is_question(call.error) else f'failed: {call.error}' if call.error else call.result
        page.line(f'  call  {one_line(f"{call.name}({arguments}) → {end}", 300)}  ({call.decision})')
    if full or not turn.cells:
        page.block('observation', turn.observation or '')
    page.block('error', turn.error, 'red')


def _truncate(text: str) -> str:
    """The start and the end of a long text."""
    if len(text) <= MAX_OUTPUT_CHARS:
        return text
    half = MAX_OUTPUT_CHARS // 2
    omitted = f'… {len(text) - MAX_OUTPUT_CHARS:,} characters omitted; use --step to show them …'
    return f'{text[:half]}\n{omitted}\n{text[-half:]}'


async def _show_step(reading: RunView, agents: Sequence[Trajectory], step: str, *, as_json: bool) -> None:
    turns = [turn for trajectory in agents for turn in trajectory.turns if step in {str(turn.number), turn.path}]
    if len(turns) > 1:
        paths = ', '.join(turn.path for turn in turns)
        msg = f'{reading.run} has several agents with a step {step}; give its path: {paths}'
        raise JournalError(msg)
    if turns and not as_json:
        _show_turn(Page(), turns[0], full=True)
        return
    path = turns[0].path if turns else step
    entry = reading.index.find(path)
    if entry is None:
        known = (
            f'it has {count_steps(len(agents[0].turns))}'
            if agents
            else f'see its paths with: habilis runs events {reading.run}'
        )
        msg = f'{reading.run} has no step {step}; {known}'
        raise JournalError(msg)
    if turns:
        print(json.dumps(_turn_to_json(turns[0])))
        return
    records = [record for record in (entry.opened, entry.started, entry.asked, entry.answered, entry.end) if record]
    values = [{'kind': each.kind, 'value': await reading.value_or_none(each)} for each in records]
    print(json.dumps(values) if as_json else '\n'.join(f'{each["kind"]}: {dump(each["value"])}' for each in values))


# Pending questions ----------------------------------------------------------------------------------------------------


def _answer_lines(access: JournalAccess, reading: RunView, questions: Sequence[Question]) -> list[str]:
    """Pending questions, each with the command that answers it."""
    run, lines = reading.run, list[str]()
    question = reading.ended.get('question')
    if isinstance(question, str) and reading.state == 'waiting':
        lines += ['', f'question: {question}', f'  answer with: {access.command("resume", run, " --answer TEXT")}']
    for path, request in questions:
        fields = request if isinstance(request, dict) else {}
        which = f' --path {shlex.quote(path)}' if len(questions) > 1 else ''
        lines += ['', f'question: {fields.get("question") or dump(request)}']
        if fields.get('kind') == 'approval':
            lines.append(f'  {one_line(dump(fields.get("arguments") or {}), 300)}')
            lines += [line for line in str(fields.get('diff') or '').splitlines() if line]
            lines.append(f'  approve with: {access.command("approve", run, which)}')
            lines.append(f'  or deny with: {access.command("deny", run, which)}')
        elif fields.get('kind') == 'uncertain':
            again = access.command('answer', run, which, value=' \'{"again": true}\'')
            lines.append(f'  run it again: {again}')
            done = access.command('answer', run, which, value=' \'{"value": …}\'')
            lines.append(f'  or, if it was done, give its result: {done}')
        else:
            lines.append(f'  answer with: {access.command("answer", run, which, value=" JSON")}')
    if not lines and reading.state in {'interrupted', 'stopped', 'failed'}:
        lines += ['', f'{reading.state}; resume with: {access.command("resume", run)}']
    return lines


# As JSON --------------------------------------------------------------------------------------------------------------


def _to_json(
    reading: RunView, agents: Sequence[Trajectory], steps: Sequence[StepStatus], questions: Sequence[Question]
) -> dict[str, Json]:
    info: dict[str, Json] = asdict(reading.info)
    agents_json: list[Json] = [
        {
            'path': trajectory.path,
            'task': trajectory.inputs.task,
            'model': trajectory.inputs.model,
            'steps': [_turn_to_json(turn) for turn in trajectory.turns],
            'usage': asdict(trajectory.usage),
            'answer': None if trajectory.result is None else answer_text(trajectory.result.output),
        }
        for trajectory in agents
    ]
    return {
        **info,
        'status': reading.state,
        'agents': agents_json,
        'steps': [asdict(step) for step in steps],
        'question': reading.ended.get('question') if reading.state == 'waiting' else None,
        'questions': [{'path': path, 'request': request} for path, request in questions],
        'score': reading.score,
        'damage': [str(error) for error in reading.damage],
    }


def _turn_to_json(turn: Turn) -> dict[str, Json]:
    cell = turn.cells[-1].cell if turn.cells else None
    error = cell.error if cell else None
    return {
        'step': turn.number,
        'path': turn.path,
        'at': turn.at,
        'messages': list(turn.user_messages),
        'reply': turn.reply.text if turn.reply is not None else None,
        'code': turn.code,
        'stdout': ''.join(each.cell.stdout for each in turn.cells),
        'value': cell.text if cell else None,
        'observation': turn.observation,
        'error': turn.error or (None if error is None or is_question(error.message) else str(error)),
        'calls': [call_as_json(call) for call in turn.calls],
        'seconds': turn.seconds,
    }
