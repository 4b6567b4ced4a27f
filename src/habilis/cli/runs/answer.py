"""`habilis runs answer`, `approve` and `deny`."""

import json
from dataclasses import replace

import typer

from habilis.cli.runs.journal import JournalAccess, with_journal
from habilis.cli.runs.resume import ResumeOptions, read_recorded_run, resume_run
from habilis.cli.streams import say
from habilis.core.codec import Json
from habilis.journal.questions import answer_run


def parse_answer(text: str) -> Json:
    """The answer as JSON; text that is not JSON is taken as a string."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if text[:1] in {'{', '[', '"'}:
            msg = f'{text[:50]} is not valid JSON; quote it for the shell: \'{{"again": true}}\''
            raise typer.BadParameter(msg, param_hint='JSON') from None
        return text


def denial(reason: str | None) -> Json:
    """The answer that denies a tool call."""
    return False if reason is None else {'approved': False, 'reason': reason}


def answer_question(options: ResumeOptions, answer: Json, *, path: str | None, resume: bool) -> int:
    """Record an answer, and resume the run if no other question is pending."""
    agent_asks = path is None and not isinstance(answer, bool) and read_recorded_run(options).question is not None
    if agent_asks:
        if not resume:
            msg = "the agent's question can only be answered by resuming the run; leave out --no-resume"
            raise typer.BadParameter(msg, param_hint='--no-resume')
        return resume_run(replace(options, answer=answer if isinstance(answer, str) else json.dumps(answer)))

    async def record(access: JournalAccess) -> int:
        pending = await answer_run(access.store, options.run, answer, path=path, user=access.user)
        if pending:
            say(f'answer recorded; {len(pending)} more pending, see: {access.command("show", options.run)}')
        elif not resume:
            say(f'answer recorded; resume with: {access.command("resume", options.run)}')
        return len(pending)

    pending = with_journal(options.journal, options.user, record)
    return resume_run(options) if resume and not pending else 0
