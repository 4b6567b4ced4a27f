"""J17: two independent solutions are compared; no effect is repeated."""

from pathlib import Path
from typing import Any

import pytest

from habilis.agent import Agent
from habilis.agent.loop.agreement import TEMPERATURE, same_answer
from habilis.core.errors import ModelUnavailable
from habilis.journal import MemoryStore
from habilis.models import ScriptedModel
from habilis.sandbox import Mount, Sandbox
from habilis.tools import ApprovalRequest, tool
from tests.agent.scripts import block, sent
from tests.cases import each_case

JOURNALS = pytest.mark.parametrize('journal', ['off', None])


@JOURNALS
async def test_equal_answers_agree_and_the_second_solution_knows_nothing_of_the_first(journal: str | None) -> None:
    model = ScriptedModel(
        [block('x = 42\nprint("first way")\nfinal_answer(x)'), block('final_answer("x" in dir() or 42)')]
    )
    async with Agent(model, agree=2, journal=journal) as agent:
        result = await agent.run('What is 6 times 7?', variables={'given': 1})
    assert result.output == 42
    assert result.agreement is not None
    assert (result.agreement.agreed, result.agreement.outputs) == (True, (42, 42))
    assert result.agreement
    assert 'first way' not in sent(model, 1)
    assert [request.options.temperature for request in model.requests] == [None, TEMPERATURE]
    assert result.usage.requests == 2, 'the second solution is paid for too'


async def test_without_agree_nothing_is_solved_twice() -> None:
    model = ScriptedModel([block('final_answer(1)')])
    async with Agent(model) as agent:
        assert (await agent.run('go')).agreement is None


@JOURNALS
async def test_on_disagreement_the_first_answer_is_taken_and_reported(journal: str | None) -> None:
    async with Agent(
        ScriptedModel([block('final_answer(1)'), block('final_answer(2)')]), agree=2, journal=journal
    ) as agent:
        result = await agent.run('go')
    assert (result.ended, result.output) == ('answer', 1)
    assert result.agreement is not None
    assert (result.agreement.agreed, result.agreement.outputs) == (False, (1, 2))
    assert not result.agreement


@JOURNALS
async def test_on_disagreement_a_person_can_be_asked_once(journal: str | None) -> None:
    replies = [block('final_answer(1)'), block('final_answer(2)'), block('final_answer(2)')]
    async with Agent(ScriptedModel(replies), agree=2, on_disagreement='ask', journal=journal) as agent:
        asked = await agent.run('go')
        assert (asked.ended, asked.output) == ('question', None)
        assert asked.question == 'Independent solutions disagree: (1) 1; (2) 2. Which is right?'
        result = await agent.resume(asked.run_id, 'The second.')
    assert (result.ended, result.output) == ('answer', 2)


async def test_on_disagreement_the_task_is_handed_to_a_larger_model() -> None:
    small = ScriptedModel([block('final_answer(1)'), block('final_answer(2)')], name='scripted:small')
    large = ScriptedModel([block('final_answer(3)')], name='scripted:large')
    async with Agent(small, agree=2, escalate=large) as agent:
        result = await agent.run('go')
    assert result.output == 3
    assert result.agreement is not None
    assert (result.agreement.agreed, result.agreement.decided_by) == (False, 'scripted:large')
    assert large.requests[0].options.temperature is None


async def test_a_larger_model_is_not_asked_where_the_answers_agree() -> None:
    large = ScriptedModel([])
    async with Agent(ScriptedModel([block('final_answer(1)')] * 2), agree=2, escalate=large) as agent:
        assert (await agent.run('go')).output == 1
    assert not large.requests


@JOURNALS
async def test_calls_of_the_first_solution_are_answered_from_it(journal: str | None) -> None:
    made: list[Any] = []

    @tool(idempotent=False)
    def pay(who: str, amount: int) -> list[str]:
        """Pay."""
        made.append((who, amount))
        return [f'receipt {len(made)}']

    @tool
    def rate(currency: str) -> float:
        """The rate."""
        made.append(currency)
        return 1.5

    first = block('final_answer([pay("bob", 100), rate("usd")])')
    second = block('r = rate("usd")\nrate("chf")\nfinal_answer([pay(amount=100, who="bob"), r])')
    async with Agent(ScriptedModel([first, second]), tools=[pay, rate], agree=2, journal=journal) as agent:
        result = await agent.run('Pay bob 100.')
    assert result.agreement
    assert result.output == [['receipt 1'], 1.5]
    assert made == [('bob', 100), 'usd', 'chf'], 'only the idempotent call that was not recorded is made'


@JOURNALS
async def test_a_call_that_could_repeat_an_effect_stops_the_comparison(journal: str | None) -> None:
    made: list[int] = []

    @tool(idempotent=False)
    def pay(amount: int) -> str:
        """Pay."""
        made.append(amount)
        return 'paid'

    replies = [block('final_answer(pay(100))'), block('try:\n    pay(101)\nexcept Exception:\n    pass\nx = 1')]
    async with Agent(ScriptedModel(replies), tools=[pay], agree=2, journal=journal) as agent:
        result = await agent.run('Pay.')
    assert (result.output, made) == ('paid', [100])
    assert result.agreement is not None
    assert result.agreement.agreed is None
    assert 'pay was called with other arguments' in result.agreement.reason


async def test_the_same_approval_is_asked_for_once() -> None:
    asked: list[str] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request.tool)
        return True

    @tool(needs_approval=True, idempotent=False)
    def pay(amount: int) -> str:
        """Pay."""
        return 'paid'

    replies = [block('final_answer(pay(100))')] * 2
    async with Agent(ScriptedModel(replies), tools=[pay], agree=2, approve=approve) as agent:
        assert (await agent.run('Pay.')).agreement
    assert asked == ['pay']


async def test_files_of_the_workspace_are_written_by_the_first_solution_only(tmp_path: Path) -> None:
    (tmp_path / 'data.txt').write_text('5')
    first = block('n = int(open("data.txt").read())\nopen("out.txt", "a").write("first")\nfinal_answer(n)')
    second = block('import os\nopen("out.txt", "a").write("second")\nfinal_answer(int(open("data.txt").read()))')
    async with Agent(ScriptedModel([first, second]), workspace=tmp_path, agree=2) as agent:
        result = await agent.run('Read it.')
    assert result.agreement
    assert (tmp_path / 'out.txt').read_text() == 'first'
    assert sorted(path.name for path in tmp_path.iterdir()) == ['data.txt', 'out.txt']


async def test_a_second_solution_writes_to_no_mount(tmp_path: Path) -> None:
    code = block('final_answer(open("/out/log.txt", "a").write("x"))')
    mounts = [Mount(source=tmp_path, target='/out', writable=True)]
    async with Agent(ScriptedModel([code, code]), sandbox_settings={'mounts': mounts}, agree=2) as agent:
        agreement = (await agent.run('Write it.')).agreement
    assert agreement is not None
    assert (agreement.agreed, 'writable mounts' in agreement.reason) == (None, True)
    assert (tmp_path / 'log.txt').read_text() == 'x'


async def test_a_sandbox_that_was_passed_in_is_forked_and_keeps_only_the_first_solution() -> None:
    async with await Sandbox.create(variables={'n': 20}) as sandbox:
        replies = [block('n += 1\nfinal_answer(n)'), block('n += 1\nm = 0\nfinal_answer(n)')]
        async with Agent(ScriptedModel(replies), sandbox=sandbox, agree=2) as agent:
            assert (await agent.run('Count on.')).agreement
        assert await sandbox.get_variables('n') == {'n': 21}
        assert 'm' not in await sandbox.describe_variables()


async def test_a_run_that_stopped_in_the_second_solution_is_resumed_there() -> None:
    made: list[int] = []

    @tool(idempotent=False)
    def pay(amount: int) -> str:
        """Pay."""
        made.append(amount)
        return 'paid'

    journal = MemoryStore()
    dying = ScriptedModel([block('final_answer(pay(100))'), block('x = pay(100)\nprint(x)'), ModelUnavailable('away')])
    async with Agent(dying, tools=[pay], agree=2, journal=journal) as agent:
        with pytest.raises(ModelUnavailable):
            await agent.run('Pay.', run_id='paying')
    going = ScriptedModel([block('final_answer(x)')])
    async with Agent(going, tools=[pay], agree=2, journal=journal) as agent:
        result = await agent.resume('paying')
    assert (result.output, made, len(going.requests)) == ('paid', [100], 1)
    assert result.agreement


async def test_the_agreement_is_part_of_the_recorded_result() -> None:
    journal = MemoryStore()
    replies = [block('final_answer({"a": (1, 2.5)})')] * 2
    async with Agent(ScriptedModel(replies), agree=2, journal=journal) as agent:
        result = await agent.run('go')
    async with Agent(ScriptedModel([]), agree=2, journal=journal) as agent:
        again = await agent.resume(result.run_id)
    assert again.agreement == result.agreement
    assert again.agreement


@each_case(
    ('one', 'other', 'same'),
    [
        (0.1 + 0.2, 0.3, True),
        (1, 1.0, True),
        (1, True, False),
        ('a ', 'a', True),
        ('a', 'A', False),
        ([1, 0.30000000000000004], [1, 0.3], True),
        ([1], (1,), False),
        ({'a': 0.3}, {'a': 0.1 + 0.2}, True),
        (float('nan'), float('nan'), True),
        (None, 0, False),
    ],
)
def test_when_two_answers_are_the_same(one: object, other: object, same: bool) -> None:
    assert same_answer(one, other) is same
