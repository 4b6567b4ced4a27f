"""The plan: sub-goals that are open, done or dropped. A model proposes, a person may change it, the host keeps it."""

from collections.abc import Sequence
from dataclasses import replace

from habilis.flows import step
from habilis.research.allowance import Allowance
from habilis.research.contract import Effort, PlanChange, SubGoal
from habilis.research.requests import Questions, lines_of, prompt

PLAN = 'plan'
"""The name of the step that records a plan."""


@step(name=PLAN)
async def keep_plan(plan: list[SubGoal]) -> list[SubGoal]:
    """Record a plan."""
    return plan


async def make_plan(
    goal: str,
    plan: Sequence[SubGoal],
    changes: Sequence[PlanChange],
    questions: Questions,
    effort: Effort,
    allowance: Allowance,
) -> list[SubGoal]:
    """The next plan: what a person has changed holds, the rest is as the model says."""
    changed = changed_plan(plan, changes)
    proposals: list[str] = []
    if allowance.is_left:
        name = 'replan' if changed and not questions.is_small else 'plan'
        text = prompt(name, small=questions.is_small).format(
            goal=goal,
            done=_listed([f'{one.text}\n  {one.finding}' for one in changed if one.status == 'done']),
            open=_listed([one.text for one in changed if one.status == 'open']),
            wishes=_wishes(changed),
            most=effort.goals,
        )
        proposals = lines_of(await questions.ask(PLAN, text, allowance))[: effort.goals]
    elif changed:
        return await keep_plan(changed)
    return await keep_plan(_merged(goal, changed, proposals))


def changed_plan(plan: Sequence[SubGoal], changes: Sequence[PlanChange]) -> list[SubGoal]:
    """The plan as a person wants it."""
    changed = list(plan)
    for change in changes:
        if change.drop:
            changed = [
                replace(one, status='dropped', by_user=True) if one.id == change.drop else one for one in changed
            ]
        if change.add.strip() and all(_same(one.text) != _same(change.add) for one in changed):
            changed.append(SubGoal(id=len(changed) + 1, text=change.add.strip(), by_user=True))
    return changed


def _merged(goal: str, plan: Sequence[SubGoal], proposals: Sequence[str]) -> list[SubGoal]:
    """The plan with the proposals: an open sub-goal that is not among them is dropped, unless a person added it."""
    split = [(text.strip(), artifact.strip()) for text, _, artifact in (one.partition('|') for one in proposals)]
    wanted = {_same(text): (text, artifact) for text, artifact in split if text}
    merged: list[SubGoal] = []
    for one in plan:
        is_wanted = wanted.pop(_same(one.text), None) is not None
        is_dropped = one.status == 'open' and not is_wanted and not one.by_user
        merged.append(replace(one, status='dropped') if is_dropped else one)
    if not merged and not wanted:
        wanted = {_same(goal): (goal, '')}
    for text, artifact in wanted.values():
        merged.append(SubGoal(id=len(merged) + 1, text=text, artifact=artifact))
    return merged


def _wishes(plan: Sequence[SubGoal]) -> str:
    added = [f'must be a sub-goal: {one.text}' for one in plan if one.by_user and one.status == 'open']
    dropped = [f'is not needed: {one.text}' for one in plan if one.by_user and one.status == 'dropped']
    return f'The user says:\n{_listed([*added, *dropped])}\n\n' if added or dropped else ''


def _same(text: str) -> str:
    return ' '.join(text.casefold().split()).rstrip('.?')


def _listed(items: Sequence[str]) -> str:
    return '\n'.join(f'- {item}' for item in items) or 'none'
