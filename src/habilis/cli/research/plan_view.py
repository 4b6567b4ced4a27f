"""`habilis research --show`: the plan as a tree, with what was noted and read."""

from collections.abc import Iterator

from habilis.agent.hooks.sanitize import one_line
from habilis.cli.runs.journal import JournalAccess, in_journal
from habilis.research.state import ResearchState, read_state


@in_journal
async def show_plan(access: JournalAccess, run: str) -> int:
    """Print the plan of a research. Returns the exit code."""
    state = await read_state(access.store, await access.resolve(run), user=access.user)
    print('\n'.join(plan_lines(state)), flush=True)
    return 0


def plan_lines(state: ResearchState) -> Iterator[str]:
    """The state of a research as text."""
    spent = state.spent
    yield f'{one_line(state.goal, 200)} ({state.run}, {state.status})'
    titles = {page.digest: f'{page.title}, {page.url}' for page in state.pages}
    for one in state.plan:
        yield f'  {one.id}. {one_line(one.text, 200)} [{one.status}]'
        notes = [note for note in state.notes if note.goal == one.id]
        for digest in dict.fromkeys(note.digest for note in notes):
            count = sum(note.digest == digest for note in notes)
            yield f'     {count} {"note" if count == 1 else "notes"}: {one_line(titles.get(digest, digest), 200)}'
    for section in state.sections:
        yield f'  written: {"  " * (len(section.place) - 1)}{one_line(section.title, 200)}'
    yield f'{len(state.pages)} pages read, {spent.calls} calls, {spent.tokens:,} tokens, ${spent.cost:.4f}'
