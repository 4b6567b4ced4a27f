"""Pending questions of a run as text, each with the command that answers it."""

import shlex
from collections.abc import Sequence

from habilis.agent.durable.records import Inputs, code_around
from habilis.cli.run.request import META_KEY
from habilis.cli.runs.journal import JournalAccess
from habilis.cli.value_text import request_lines
from habilis.core.codec import Json, dump
from habilis.core.programs import MAIN
from habilis.flows.runs import PROGRAM
from habilis.forge.build.forge import BUILD_FLOW
from habilis.journal.runs import RunView
from habilis.research.flow import RESEARCH_FLOW

Question = tuple[str, Json]
"""Path and request."""


def app_option(reading: RunView, inputs: Inputs | None) -> str:
    """The option that names the program of a run; empty if `habilis run` made it."""
    if inputs is not None and META_KEY in inputs.meta:
        return ''
    root = reading.index.find('')
    first = root.opened.value if root is not None and root.opened is not None else None
    recorded = first.get(PROGRAM) if isinstance(first, dict) else inputs.program if inputs is not None else ''
    module, _, name = str(recorded or (reading.info.name if inputs is None else '')).partition(':')
    is_known = not reading.imported and module not in {'', MAIN} and name.replace('.', '').isidentifier()
    return f' --app {shlex.quote(f"{module}:{name}")}' if is_known else ' --app MODULE:NAME'


def own_command(reading: RunView) -> str:
    """The command that resumes the build of a tool, or a research; empty for other runs."""
    commands = {BUILD_FLOW: 'habilis tools build', RESEARCH_FLOW: 'habilis research'}
    command = commands.get(reading.info.name)
    return f'{command} --resume {reading.run}' if command else ''


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
    if not lines and reading.state in {'interrupted', 'stopped', 'failed', 'waiting'}:
        command = own_command(reading) or access.command('resume', run, app)
        lines += ['', f'{reading.state}; resume with: {command}']
    return lines
