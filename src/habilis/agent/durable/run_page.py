"""A run as one HTML file, to be shared: it runs no scripts and loads nothing, and secrets are removed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html import escape

from habilis.agent.durable.cells import CellOutcome
from habilis.agent.durable.step_text import step_text
from habilis.agent.durable.trajectory import RecordedStep, Trajectory, read_trajectories
from habilis.agent.hooks.html import (
    CODE_STYLE,
    block,
    cell_text,
    code_block,
    display_block,
    folded,
    markdown_block,
    table,
    value_block,
)
from habilis.agent.parsing.replies import parse_reply
from habilis.core.integers import safe_repr
from habilis.core.secrets import redact
from habilis.journal.runs import RunView
from habilis.models.contract import Usage
from habilis.sandbox.contract import Cell

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = (
    ':root{color-scheme:light}body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;'
    'color:#1d211e;background:#fff;overflow-wrap:anywhere}section{border-top:1px solid #d9ddd8;margin-top:1rem}'
    'h2{font-size:1rem}table{border-collapse:collapse}td,th{text-align:left;vertical-align:top;padding:.1rem .6rem}'
)
_SOFT = 'color:#5d665f;font-size:0.875rem'


async def run_page(view: RunView) -> str:
    """The run: its task, its steps with code, calls, output and variables, and its answer."""
    agents = await read_trajectories(view)
    usage = sum((agent.usage for agent in agents), Usage())
    cost = '' if usage.cost is None else f' · ${usage.cost:.4f}'
    begun = datetime.fromtimestamp(view.info.created, UTC)
    facts = f'{view.run} · {view.state} · {begun:%Y-%m-%d %H:%M} UTC · {usage.tokens:,} tokens{cost}'
    if view.info.kind == 'agent' and agents:
        inner = [folded(redact(agent.inputs.task), _agent(agent)) for agent in agents[1:]]
        parts = [*_agent(agents[0]), *(['<section><h2>Agents inside</h2>', *inner, '</section>'] if inner else ())]
    else:
        parts = [folded(redact(path), [_text(await step_text(view, path, entry))]) for path, entry in view.steps()]
    title = escape(redact(view.info.title or view.run))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f'<body><main><h1>{title}</h1>{block(facts, _SOFT)}{"".join(parts)}</main></body></html>\n'
    )


def _agent(agent: Trajectory) -> Iterator[str]:
    yield block(redact(agent.inputs.task), 'white-space:pre-wrap;font-weight:bold')
    for turn in agent.turns:
        yield f'<section><h2>Step {turn.number}</h2>'
        yield from _step(turn)
        yield '</section>'
    result = agent.result
    if result is not None and result.ended == 'answer' and not _is_said(agent.turns, output := result.output):
        answer = value_block(redact(output)) if isinstance(output, str) else _text(safe_repr(output))
        yield f'<section><h2>Answer</h2>{answer}</section>'


def _is_said(turns: Sequence[RecordedStep], output: object) -> bool:
    """Whether the last step was words alone, which are the answer."""
    reply = turns[-1].reply if turns else None
    return reply is not None and isinstance(output, str) and reply.text.strip() == output.strip()


def _step(turn: RecordedStep) -> Iterator[str]:
    for message in turn.user_messages:
        yield block(redact(message), 'white-space:pre-wrap;font-weight:bold')
    if turn.reply is not None and (prose := parse_reply(turn.reply.text).prose.strip()):
        yield markdown_block(redact(prose))
    if turn.code is not None:
        yield code_block(redact(turn.code))
    for call in turn.calls:
        given = ', '.join(f'{name}={safe_repr(value)}' for name, value in (call.arguments or {}).items())
        yield folded(redact(f'{call.tool}({given})'), [_text(call.error or call.result)])
    for outcome in turn.cells:
        yield from _cell(outcome)
    if turn.error:
        yield block(redact(turn.error), f'{CODE_STYLE};color:#c00')


def _cell(outcome: CellOutcome) -> Iterator[str]:
    cell, error = outcome.cell, outcome.cell.error
    if error is not None:
        error = replace(error, message=redact(error.message), traceback=redact(error.traceback))
    yield from cell_text(
        Cell(stdout=redact(cell.stdout + cell.stderr), text=cell.text and redact(cell.text), error=error)
    )
    for one in cell.displays:
        yield display_block(one if isinstance(one.data, bytes) else replace(one, data=redact(one.data)))
    rows = [[one.name, one.type, one.size, redact(one.text)] for one in outcome.variables.values()]
    if rows:
        yield folded(f'{len(rows)} variables', [table((), rows)])


def _text(text: str | None) -> str:
    return block(redact(text or ''), CODE_STYLE)
