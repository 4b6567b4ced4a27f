"""`habilis runs answer`, `approve` and `deny`."""

import json
import shlex
import sys
from dataclasses import replace

import typer

from habilis.cli.runs.journal import JournalAccess, with_journal
from habilis.cli.runs.pending import question_lines
from habilis.cli.runs.resume import ResumeOptions, check_resumable, read_recorded_run, resume_run
from habilis.cli.streams import say
from habilis.cli.terminal_user import TerminalUser, colour_diff
from habilis.core.approval import WORDS, Approval
from habilis.core.codec import Json
from habilis.journal.questions import answer_run, check_answer, open_questions


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
    return Approval(approved=False, reason=reason or '').to_json()


def answer_question(
    options: ResumeOptions, answer: Json, *, command: str, path: str | None, resume: bool, confirm: bool = False
) -> int:
    """Record an answer, and resume the run if no other question is pending. `command` is the subcommand that does it.

    With `confirm`, a person at the terminal is shown the question first, and asked whether to go ahead.
    """
    recorded = read_recorded_run(options)
    options = replace(options, run=recorded.reading.run)
    if path is None and not isinstance(answer, bool) and recorded.question is not None:
        if not resume:
            msg = "the agent's question can only be answered by resuming the run; leave out --no-resume"
            raise typer.BadParameter(msg, param_hint='--no-resume')
        return resume_run(replace(options, answer=answer if isinstance(answer, str) else json.dumps(answer)))

    async def check(access: JournalAccess) -> int:
        nonlocal answer
        answer = await _in_words(access, options.run, path, answer)
        await check_answer(access.store, options.run, answer, path=path, user=access.user)
        return int(confirm and not await _is_confirmed(access, options.run, path))

    async def record(access: JournalAccess) -> int:
        pending = await answer_run(access.store, options.run, answer, path=path, user=access.user)
        if pending:
            say(f'answer recorded; {len(pending)} more pending, see: {access.command("show", options.run)}')
        elif not resume:
            say(f'answer recorded; resume with: {access.command("resume", options.run, recorded.app)}')
        return len(pending)

    if with_journal(options.journal, options.user, check):  # an answer cannot be taken back: try first what can fail
        say('not approved; nothing was recorded')
        return 1
    if resume:
        check_resumable(options, recorded, command, '' if path is None else f' --path {shlex.quote(path)}')
    pending = with_journal(options.journal, options.user, record)
    return resume_run(options) if resume and not pending else 0


async def _in_words(access: JournalAccess, run: str, path: str | None, answer: Json) -> Json:
    """The answer to record: that of an approval may be in the words that a person at a terminal uses."""
    if not isinstance(answer, str):
        return answer
    known = [each for each in await open_questions(access.store, run, user=access.user) if path in {None, each[0]}]
    if not known or any(not isinstance(request, dict) or request.get('kind') != 'approval' for _, request in known):
        return answer
    approval = Approval.parse(answer) if answer else None
    if approval is None:
        raise typer.BadParameter(f'answer with one of these:\n{WORDS}', param_hint='ANSWER')
    return approval.to_json()


async def _is_confirmed(access: JournalAccess, run: str, path: str | None) -> bool:
    """Show the question to the person at the terminal, and ask. True if there is no terminal, or no such question."""
    person = TerminalUser()
    reading = await access.read(run)
    known = [each for each in await open_questions(access.store, run, user=access.user) if path in {None, each[0]}]
    if not person.is_present or len(known) != 1:
        return True
    print('\n'.join(map(colour_diff, question_lines(reading, known[0]))), file=sys.stderr)
    return person.confirm('Approve?')
