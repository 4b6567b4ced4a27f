"""Pending questions of a run as text, each with the command that answers it."""

import shlex
from collections.abc import Sequence

from habilis.agent.durable.records import code_around
from habilis.cli.run.request import META_KEY
from habilis.cli.runs.journal import JournalAccess
from habilis.cli.value_text import request_lines
from habilis.core.codec import Json, dump
from habilis.journal import RunInfo
from habilis.journal.runs import RunView

MAIN = '__main__'

Question = tuple[str, Json]
"""Path and request."""


def app_option(info: RunInfo, meta: object = None) -> str:
    """The option that names the program of a run; empty if `habilis run` made it, according to its metadata."""
    if info.kind == 'agent':
        return '' if isinstance(meta, dict) and META_KEY in meta else ' --app MODULE:NAME'
    module, _, name = info.name.partition(':')
    if not name.replace('.', '').isidentifier():
        name = 'NAME'
    return f' --app {"MODULE" if module in {"", MAIN} else module}:{name}'


def question_lines(reading: RunView, question: Question) -> list[str]:
    """A question with what it is about: the call and its code, or details."""
    path, request = question
    fields = request if isinstance(request, dict) else {}
    about = request_lines(fields, code_around(reading.index, path))
    return [f'question: {fields.get("question") or dump(request)}', *(f'  {line}' for line in about)]


def answer_lines(access: JournalAccess, reading: RunView, questions: Sequence[Question], app: str) -> list[str]:
    """Pending questions, each with the command that answers it. `app` is the option that names the program."""
    run, lines = reading.run, list[str]()
    question = reading.ended.get('question')
    if isinstance(question, str) and reading.state == 'waiting':
        command = access.command('resume', run, f' --answer TEXT{app}')
        lines += ['', f'question: {question}', f'  answer with: {command}']
    for path, request in questions:
        which = f' --path {shlex.quote(path)}{app}' if len(questions) > 1 else app
        kind = request.get('kind') if isinstance(request, dict) else None
        lines += ['', *question_lines(reading, (path, request))]
        if kind == 'approval':
            lines.append(f'  approve with: {access.command("approve", run, which)}')
            lines.append(f'  or deny with: {access.command("deny", run, which)}')
        elif kind == 'uncertain':
            again = access.command('answer', run, which, value=' \'{"again": true}\'')
            lines.append(f'  run it again: {again}')
            done = access.command('answer', run, which, value=' \'{"value": …}\'')
            lines.append(f'  or, if it was done, give its result: {done}')
        else:
            lines.append(f'  answer with: {access.command("answer", run, which, value=" JSON")}')
    if not lines and reading.state in {'interrupted', 'stopped', 'failed'}:
        lines += ['', f'{reading.state}; resume with: {access.command("resume", run, app)}']
    return lines
