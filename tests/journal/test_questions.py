"""Answers to what a run asks, given while nobody works on it."""

import pytest

from habilis.core.codec import Json
from habilis.core.errors import JournalError, RunBusy, RunNotFound
from habilis.journal import Journal, MemoryStore, Paused, RunInfo, Scope
from habilis.journal.questions import answer_run, open_questions


async def asked(*requests: Json, run: str = 'one', user: str = 'ann') -> MemoryStore:
    """A store with a run that waits for answers to these."""
    store = MemoryStore()
    journal = await Journal.create(store, RunInfo(run=run, user=user))
    with Scope(journal, '').entered() as scope:
        for request in requests:
            with pytest.raises(Paused):
                await scope.ask('ask', request, question='?')
    await journal.end('waiting')
    await journal.close()
    return store


async def test_open_questions_are_listed_in_the_order_they_were_asked() -> None:
    store = await asked({'n': 1}, {'n': 2})
    assert await open_questions(store, 'one') == [('ask#1', {'n': 1}), ('ask#2', {'n': 2})]


async def test_a_long_request_comes_back_whole() -> None:
    long: Json = {'text': 'x' * 100_000}
    store = await asked(long)
    assert await open_questions(store, 'one') == [('ask#1', long)]
    assert await answer_run(store, 'one', 'yes') == []


async def test_an_answer_is_recorded_and_the_run_no_longer_waits_once_all_are_given() -> None:
    store = await asked({'n': 1}, {'n': 2})
    assert await answer_run(store, 'one', 'a', path='ask#2') == ['ask#1']
    assert (await store.info('one')).status == 'waiting'
    assert await answer_run(store, 'one', 'b') == []
    assert (await store.info('one')).status == 'stopped'
    assert await open_questions(store, 'one') == []
    assert (await store.lease('one')).until == 0


async def test_which_question_must_be_said_if_there_are_several() -> None:
    store = await asked({'n': 1}, {'n': 2})
    with pytest.raises(JournalError, match='several open questions; give the path of one: ask#1, ask#2'):
        await answer_run(store, 'one', True)


async def test_a_question_that_was_not_asked_or_was_answered_is_refused() -> None:
    store = await asked({'n': 1}, {'n': 2})
    await answer_run(store, 'one', True, path='ask#1')
    with pytest.raises(JournalError, match='already answered'):
        await answer_run(store, 'one', True, path='ask#1')
    with pytest.raises(JournalError, match='no open question at ask#7; its open questions: ask#2'):
        await answer_run(store, 'one', True, path='ask#7')
    await answer_run(store, 'one', True)
    with pytest.raises(JournalError, match='has no open question'):
        await answer_run(store, 'one', True)
    assert len([record for record in await store.load('one') if record.kind == 'answered']) == 2


@pytest.mark.parametrize(
    ('kind', 'answer', 'problem'),
    [
        ('approval', 'yes', 'True or False'),
        ('approval', None, 'True or False'),
        ('approval', {'approved': 'yes'}, 'True or False'),
        ('uncertain', True, 'may have run already'),
        ('uncertain', {'again': False}, 'may have run already'),
    ],
)
async def test_an_answer_that_means_nothing_is_refused_and_may_be_given_again(
    kind: str, answer: Json, problem: str
) -> None:
    store = await asked({'kind': kind, 'question': '?'})
    with pytest.raises(JournalError, match=problem):
        await answer_run(store, 'one', answer)
    assert len(await open_questions(store, 'one')) == 1
    assert (await store.info('one')).status == 'waiting'


async def test_other_users_cannot_see_or_answer() -> None:
    store = await asked({'n': 1})
    with pytest.raises(RunNotFound):
        await open_questions(store, 'one', user='bob')
    with pytest.raises(RunNotFound):
        await answer_run(store, 'one', True, user='bob')
    assert await answer_run(store, 'one', True, user='ann') == []


async def test_a_run_that_somebody_works_on_cannot_be_answered() -> None:
    store = await asked({'n': 1})
    journal = await Journal.open(store, 'one')
    with pytest.raises(RunBusy):
        await answer_run(store, 'one', True)
    await journal.close()
    assert await answer_run(store, 'one', True) == []


async def test_a_run_that_is_not_there_cannot_be_answered() -> None:
    with pytest.raises(RunNotFound):
        await answer_run(MemoryStore(), 'one', True)
