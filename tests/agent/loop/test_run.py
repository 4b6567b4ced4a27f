"""The loop: what the model is asked, what is run, and how a run ends. Each test names the row it shows."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest

from habilis.agent import Agent, Bounds, RunLimits
from habilis.core.errors import AgentError, ContextOverflow, EmptyReply, ModelUnavailable
from habilis.core.limits import Limits
from habilis.journal import MemoryStore
from habilis.models import FunctionCall, Message, Reply, ScriptedModel
from habilis.sandbox import Sandbox
from habilis.sandbox.options import SandboxSettings
from habilis.tools import people_toolset, todo_toolset, tool
from tests.agent.scripts import block, sent


def test_two_steps_reach_the_answer_and_the_second_prompt_has_the_first_output() -> None:
    """A1, B10."""
    model = ScriptedModel([block('x = 6 * 7\nprint("x is", x)'), block('final_answer(x)')])
    with Agent(model) as agent:
        result = agent.run_sync('What is 6 times 7?')
    assert result.output == 42
    assert result.ended == 'answer'
    assert 'x is 42' in sent(model, 1)
    assert [step.code for step in result.steps] == ['x = 6 * 7\nprint("x is", x)', 'final_answer(x)']
    assert result.scripted


async def test_steps_by_hand_give_the_same_answer_and_steps_as_run() -> None:
    """A3."""
    replies = [block('a = [1, 2]\nprint(a)'), block('a.append(3)\nprint(a)'), block('final_answer(a)')]
    async with Agent(ScriptedModel(replies)) as one, Agent(ScriptedModel(replies)) as other:
        at_once = await one.run('go')
        run = await other.start('go')
        seen = 0
        while (result := await run.step()) is None:
            seen += 1
            assert len(run.steps) == seen
        assert result.output == at_once.output == [1, 2, 3]
        assert [step.observation for step in run.steps] == [step.observation for step in at_once.steps]
        with pytest.raises(AgentError, match='has its answer'):
            await run.step()


@pytest.mark.parametrize('journal', ['off', None])
async def test_runs_by_hand_that_are_closed_leave_nothing_behind(journal: str | None) -> None:
    async with Agent(ScriptedModel([block('final_answer(1)')] * 5), journal=journal) as agent:
        tasks = len(asyncio.all_tasks())
        for _ in range(5):
            async with await agent.start('go') as run:
                await run.step()
        assert not agent._runner._open  # pyright: ignore[reportPrivateUsage]
        assert len(asyncio.all_tasks()) == tasks


async def test_a_manual_run_takes_a_message_after_its_answer_and_resume_makes_no_request() -> None:
    model = ScriptedModel([block('x = 1\nfinal_answer(x)'), block('final_answer(x + 1)')])
    async with Agent(model, journal='off') as agent:
        run = await agent.start('go')
        assert (await run.step()) is not None
        run.tell('One more.')
        await run.step()
        assert (await agent.resume(run.id)).output == 2
        assert len(model.requests) == 2
        assert not agent._runner._open  # pyright: ignore[reportPrivateUsage]


async def test_a_run_by_hand_that_was_closed_is_resumed_from_its_record() -> None:
    async with Agent(ScriptedModel([block('n = 4'), block('final_answer(n)')])) as agent:
        async with await agent.start('go') as run:
            await run.step()
        await run.close()
        assert (await agent.resume(run.id)).output == 4


@pytest.mark.parametrize('journal', ['off', None])
async def test_a_document_of_a_first_step_that_failed_is_there_when_the_run_is_resumed(
    journal: str | None, protocol: str
) -> None:
    model = ScriptedModel([ModelUnavailable('the server is away'), block('final_answer(artifacts["a"])')])
    async with Agent(model, journal=journal) as agent:
        with pytest.raises(ModelUnavailable):
            await agent.run('go', artifacts={'a': 'the secret garden'}, run_id=f'documents-{protocol}-{journal}')
        assert (await agent.resume(f'documents-{protocol}-{journal}')).output == 'the secret garden'
    assert 'the secret garden' in sent(model, 1)


async def test_a_run_stopped_at_max_steps_is_distinguished_and_resume_finishes_it() -> None:
    """A4."""
    model = ScriptedModel([block('n = 1\nprint(n)'), block('n += 1\nprint(n)'), block('final_answer(n)')])
    async with Agent(model) as agent:
        stopped = await agent.run('count', max_steps=2)
        assert (stopped.ended, stopped.output, len(stopped.steps)) == ('max_steps', None, 2)
        finished = await agent.resume(stopped.run_id)
        assert (finished.ended, finished.output, len(finished.steps)) == ('answer', 2, 3)
        assert (await agent.resume(stopped.run_id)).output == 2, 'one that has its answer gives it again'


async def test_final_answer_ends_the_run_in_that_step() -> None:
    """A5."""
    model = ScriptedModel([block('final_answer("first")\nfinal_answer("second")'), block('print("never")')])
    async with Agent(model) as agent:
        result = await agent.run('go')
    assert (result.output, len(result.steps), len(model.requests)) == ('first', 1, 1)


@pytest.mark.parametrize('code', ['final_answer(4)', 'final_answer(value=4)', 'final_answer(answer=4)'])
async def test_the_answer_may_be_passed_by_name(code: str) -> None:
    async with Agent(ScriptedModel([block(code)])) as agent:
        assert (await agent.run('go')).output == 4


@pytest.mark.parametrize('code', ['final_answer()', 'final_answer(1, 2)', 'final_answer(a=1, b=2)'])
async def test_an_answer_is_one_value(code: str) -> None:
    model = ScriptedModel([block(code), block('final_answer("ok")')])
    async with Agent(model) as agent:
        assert (await agent.run('go')).output == 'ok'
    assert 'final_answer takes one value' in sent(model, 1)


async def test_a_tool_that_hangs_is_named_in_its_step() -> None:
    @tool
    def hang() -> None:
        """Hang."""
        time.sleep(3)

    model = ScriptedModel([block('hang()'), block('final_answer("ok")')])
    limits = Limits(seconds=0.5)
    async with Agent(model, tools=[hang], sandbox_settings=SandboxSettings(limits=limits)) as agent:
        result = await agent.run('go')
    assert 'The tool hang took too long' in sent(model, 1)
    assert [call.tool for call in result.steps[0].calls] == ['hang']
    assert result.steps[1].calls == ()


async def test_a_tool_cannot_take_the_name_of_final_answer() -> None:
    """A5."""

    def final_answer(value: int) -> int:
        return value

    with pytest.raises(Exception, match='final_answer'):
        await Agent(ScriptedModel(['x']), tools=[final_answer]).run('go')


async def test_without_can_stop_final_answer_is_neither_in_the_docs_nor_callable() -> None:
    """A6."""
    model = ScriptedModel([block('final_answer(1)'), 'I think it is 1.', block('final_answer(2)')])
    async with Agent(model) as agent:
        run = await agent.start('go')
        assert await run.step(can_stop=False) is None
        assert "name 'final_answer' is not defined" in (run.steps[0].observation or '')
        assert await run.step(can_stop=False) is None  # words are no answer now
        assert 'final_answer' not in sent(model, 0)
        result = await run.step()
        assert result is not None
        assert result.output == 2
        assert 'final_answer' in model.requests[2].messages[0].text


@pytest.mark.parametrize(
    ('summary', 'expected'),
    [('off', None), ('default', 'sum up'), ('Write a haiku about it.', 'Write a haiku about it.')],
)
async def test_the_final_summary_is_off_default_or_by_an_own_prompt(summary: str, expected: str | None) -> None:
    """A7."""
    model = ScriptedModel([block('print("the tide is high")\nfinal_answer(3)'), 'All is well.'])
    async with Agent(model, summary=summary) as agent:
        result = await agent.run('go')
    assert result.output == 3
    if expected is None:
        assert len(model.requests) == 1
        assert result.summary is None
    else:
        assert result.summary == 'All is well.'
        assert 'the tide is high' in sent(model, 1)
        assert len(model.requests) == 2
    if summary not in ('off', 'default'):
        assert summary in sent(model, 1)


async def test_an_artifact_reaches_the_prompt_of_its_step_only_and_code_reads_it_by_name() -> None:
    """A8."""
    model = ScriptedModel([block('print(artifacts["notes.md"].upper())'), block('final_answer("ok")')])
    async with Agent(model) as agent:
        result = await agent.run('shout', artifacts={'notes.md': 'the secret garden'})
    assert 'notes.md' in sent(model, 0)
    assert 'the secret garden' in sent(model, 0)
    assert 'the secret garden' not in sent(model, 1)
    cell = result.steps[0].cell
    assert cell is not None
    assert cell.stdout == 'THE SECRET GARDEN\n'


async def test_a_wrong_argument_is_reported_and_the_tool_is_not_called() -> None:
    """A9."""
    called: list[int] = []

    @tool
    def double(number: int) -> int:
        """Twice the number."""
        called.append(number)
        return number * 2

    model = ScriptedModel([block('print(double("four"))'), block('final_answer(double(4))')])
    async with Agent(model, tools=[double]) as agent:
        result = await agent.run('go')
    assert result.output == 8
    assert called == [4]
    assert 'double' in sent(model, 1)
    assert 'number' in sent(model, 1)


async def test_a_tool_is_documented_with_name_parameters_types_and_description() -> None:
    """A11."""

    def lookup(word: str, limit: int = 3) -> list[str]:
        """Find words like this one."""
        return [word] * limit

    model = ScriptedModel([block('final_answer(lookup("a"))')])
    async with Agent(model, tools=[lookup]) as agent:
        result = await agent.run('go')
    assert 'def lookup(word: str, limit: int = 3) -> list[str]:' in sent(model, 0)
    assert 'Find words like this one.' in sent(model, 0)
    assert result.output == ['a', 'a', 'a']


async def test_falsy_arguments_arrive_unchanged() -> None:
    """A12."""
    got: list[object] = []

    def take(a: int, flag: bool, s: str) -> None:
        got.append((a, flag, s))

    async with Agent(ScriptedModel([block('take(0, flag=False, s="")\nfinal_answer("done")')]), tools=[take]) as agent:
        await agent.run('go')
    assert got == [(0, False, '')]


async def test_a_tool_that_fails_softly_gives_none_and_its_error_is_shown() -> None:
    """A13."""

    @tool(on_error='none')
    def fetch(page: str) -> str:
        """Get a page."""
        msg = f'{page} is offline'
        raise ConnectionError(msg)

    model = ScriptedModel([block('print(fetch("a.html"))'), block('final_answer("went on")')])
    async with Agent(model, tools=[fetch]) as agent:
        result = await agent.run('go')
    assert result.output == 'went on'
    assert 'None' in sent(model, 1)
    assert 'a.html is offline' in sent(model, 1)


async def test_tools_for_the_model_and_for_the_code_are_each_visible_on_their_side_only() -> None:
    """A14."""

    @tool(side='model')
    def remember(fact: str) -> str:
        """Keep a fact."""
        return f'kept {fact}'

    @tool
    def count(text: str) -> int:
        """Count letters."""
        return len(text)

    call = FunctionCall(id='1', name='remember', arguments='{"fact": "sky"}')
    model = ScriptedModel(
        [Reply(calls=(call,), finish='calls'), block('remember("x")'), block('final_answer(count("abc"))')],
        functions=True,
    )
    async with Agent(model, tools=[remember, count]) as agent:
        result = await agent.run('go')
    offered = [function.name for function in model.requests[0].options.functions]
    assert offered == ['python', 'remember']
    assert 'def count' in model.requests[0].messages[0].text
    assert 'remember' not in model.requests[0].messages[0].text
    assert 'kept sky' in sent(model, 1)
    assert 'is not defined' in sent(model, 2)
    assert result.output == 3


async def test_code_as_a_function_call_is_run_and_answered_under_its_id() -> None:
    call = FunctionCall(id='c7', name='python', arguments='{"code": "print(40 + 2)"}')
    done = FunctionCall(id='c8', name='python', arguments='{"code": "final_answer(42)"}')
    model = ScriptedModel([Reply(calls=(call,), finish='calls'), Reply(calls=(done,), finish='calls')], functions=True)
    async with Agent(model) as agent:
        result = await agent.run('go')
    assert result.output == 42
    answer = model.requests[1].messages[-1]
    assert (answer.role, answer.call_id) == ('tool', 'c7')
    assert '42' in answer.text


async def test_variables_go_in_and_their_changes_come_back() -> None:
    """A15."""
    model = ScriptedModel([block('config["seen"] = len(config)\nfinal_answer(config["name"])')])
    async with Agent(model) as agent:
        result = await agent.run('go', variables={'config': {'name': 'x'}})
    assert result.output == 'x'
    assert result.variables == {'config': {'name': 'x', 'seen': 1}}
    assert "config = {'name': 'x'}" in sent(model, 0)


async def test_an_error_shows_what_was_printed_before_and_the_traceback() -> None:
    """A16."""
    model = ScriptedModel([block('print("so far")\n1 / 0'), block('final_answer(1)')])
    async with Agent(model) as agent:
        await agent.run('go')
    for part in ('so far', 'Traceback', '1 / 0', 'ZeroDivisionError'):
        assert part in sent(model, 1)


async def test_async_tools_run_side_by_side() -> None:
    """A18."""
    inside = most = 0

    async def look(place: int) -> int:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.1)
        inside -= 1
        return place

    code = 'import asyncio\nfinal_answer(await asyncio.gather(*(look(i) for i in range(3))))'
    async with Agent(ScriptedModel([block(code)]), tools=[look]) as agent:
        result = await agent.run('go')
    assert result.output == [0, 1, 2]
    assert most == 3


@pytest.mark.parametrize(
    ('limits', 'ended'),
    [
        (RunLimits(steps=3), 'max_steps'),
        (RunLimits(requests=3), 'max_requests'),
        (RunLimits(tokens=900), 'max_tokens'),
        (RunLimits(tool_calls=3), 'max_tool_calls'),
        (RunLimits(seconds=0.5), 'max_seconds'),
    ],
)
async def test_each_limit_ends_the_run_by_its_name(limits: RunLimits, ended: str) -> None:
    """A19."""
    number = 0

    def ping() -> int:
        return 1

    def reply(messages: Sequence[Message]) -> str:
        nonlocal number
        number += 1
        pause = 'import time\ntime.sleep(0.2)' if ended == 'max_seconds' else ''
        return block(f'{pause}\nprint({number}, ping())')

    async with Agent(ScriptedModel(reply), tools=[ping]) as agent:
        result = await agent.run('go for ever', limits=limits)
    assert result.ended == ended
    assert result.output is None


async def test_a_cost_limit_ends_the_run() -> None:
    """A19."""
    from habilis.models import Usage

    costly = Reply(text=block('print(1)'), usage=Usage(requests=1, input_tokens=1, output_tokens=1, cost=0.6))
    other = Reply(text=block('print(2)'), usage=Usage(requests=1, input_tokens=1, output_tokens=1, cost=0.6))
    async with Agent(ScriptedModel([costly, other, costly])) as agent:
        result = await agent.run('go', limits=RunLimits(cost=1.0))
    assert result.ended == 'max_cost'
    assert result.cost == pytest.approx(1.2)


async def test_asking_the_user_pauses_the_run_and_their_answer_resumes_it() -> None:
    """A20."""
    model = ScriptedModel(
        [block('colour = ask_user("Which colour?")'), block('final_answer("blue it is")')],
    )
    async with Agent(model, tools=[people_toolset()]) as agent:
        asked = await agent.run('paint')
        assert (asked.ended, asked.question) == ('question', 'Which colour?')
        with pytest.raises(AgentError, match='pass the answer'):
            await agent.resume(asked.run_id)
        done = await agent.resume(asked.run_id, 'blue')
    assert done.output == 'blue it is'
    assert model.requests[1].messages[-1].text == 'blue'


async def test_notifying_the_user_continues() -> None:
    """A20."""
    seen: list[str] = []

    def hook(event: object) -> None:
        if getattr(event, 'kind', '') == 'notice':
            seen.append(str(getattr(event, 'text', '')))

    model = ScriptedModel([block('notify_user("half way")\nfinal_answer(1)')])
    async with Agent(model, tools=[people_toolset()], hooks=[hook]) as agent:
        assert (await agent.run('go')).output == 1
    assert seen == ['half way']


async def test_a_toolset_that_is_off_is_absent_from_the_prompt_and_refused() -> None:
    """A22."""
    toolset = todo_toolset()
    model = ScriptedModel([block('print(todo_read())'), block('final_answer(1)')])
    async with Agent(model, tools=[toolset]) as agent:
        run = await agent.start('go')
        run.toolbox.disable('todo')
        await run.step()
    assert 'todo' not in sent(model, 0)
    assert 'todo_read was not called: it is disabled' in (run.steps[0].observation or '')


async def test_h6_a_second_run_begins_with_an_empty_list() -> None:
    write = block("todo_write([{'id': 1, 'text': 'a', 'status': 'pending'}])\nfinal_answer(todo_read())")
    model = ScriptedModel([write, block('final_answer(f"{todo_read()}")')])
    async with Agent(model, tools=[todo_toolset()]) as agent:
        run = await agent.start('go')
        await run.step()
        assert (await agent.run('go')).output == '[]'
        assert await run.toolbox.call('todo_read') == [{'id': 1, 'text': 'a', 'status': 'pending'}]


async def test_a_ready_toolset_can_be_used_without_python() -> None:
    call = FunctionCall(id='1', name='todo_write', arguments='{"items": [{"id": 1, "text": "a", "status": "pending"}]}')
    model = ScriptedModel([Reply(calls=(call,), finish='calls'), 'Done.'], functions=True)
    async with Agent(model, tools=[todo_toolset(side='model')], python=False) as agent:
        await agent.run('go')
    assert '[ ] 1: a' in sent(model, 1)


@pytest.mark.one_protocol
async def test_without_python_only_functions_are_offered_and_nothing_is_run() -> None:
    """A22."""

    @tool(side='model')
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    call = FunctionCall(id='1', name='add', arguments='{"a": 2, "b": 3}')
    model = ScriptedModel([Reply(calls=(call,), finish='calls'), block('print(5)')], functions=True)
    async with Agent(model, tools=[add], python=False) as agent:
        result = await agent.run('2 + 3?')
    assert [function.name for function in model.requests[0].options.functions] == ['add']
    assert all(step.cell is None for step in result.steps)
    assert result.output == block('print(5)'), 'code is words like any others'


# What goes wrong ------------------------------------------------------------------------------------------------------


async def test_a_function_that_is_defined_and_not_called_gets_a_hint() -> None:
    model = ScriptedModel([block('def area(r):\n    return 3 * r * r'), block('final_answer(area(2))')])
    async with Agent(model) as agent:
        result = await agent.run('go')
    assert 'defined area but did not call it' in sent(model, 1)
    assert result.output == 12


async def test_an_undefined_tool_gets_the_nearest_names() -> None:
    def get_weather(city: str) -> str:
        return city

    model = ScriptedModel([block('getweather("Bern")'), block('final_answer(get_weather("Bern"))')])
    async with Agent(model, tools=[get_weather]) as agent:
        await agent.run('go')
    assert 'get_weather' in sent(model, 1).rpartition('Error')[2]


@dataclass
class Mute:
    a: int

    def __str__(self) -> str:
        raise KeyError

    __repr__ = __str__


async def test_values_that_cannot_be_written_out_are_no_end() -> None:
    @tool
    def digits(number: int) -> int:
        """How many."""
        return number.bit_length()

    code = block('final_answer(digits(v) and v)')
    model = ScriptedModel([code, code, block('final_answer({"a": 1})')])
    async with Agent(model, tools=[digits]) as agent:
        result = await agent.run('Which has the most digits?', variables={'v': 10**5000})
        assert result.output == 10**5000
    async with Agent(model, output_type=Mute) as agent:
        assert (await agent.run('go')).unwrap().a == 1


async def test_after_a_message_of_a_person_answers_of_the_wrong_type_are_counted_anew() -> None:
    model = ScriptedModel([*['many'] * 5, block('x = 3\nprint(x)'), 'three', block('final_answer(x)')])
    async with Agent(model, output_type=int) as agent:
        run = await agent.start('go')
        while (result := await run.step()) is None:
            pass
        assert result.ended == 'invalid_output'
        run.tell('Give a number.')
        assert [await run.step(), await run.step()] == [None, None]
        result = await run.step()
        assert result is not None
        assert (result.ended, result.output) == ('answer', 3)


async def test_three_empty_replies_are_an_error_and_one_is_not() -> None:
    async with Agent(ScriptedModel(['', block('final_answer(1)')])) as agent:
        assert (await agent.run('go')).output == 1
    async with Agent(ScriptedModel(['', ' ', '\n'])) as agent:
        with pytest.raises(EmptyReply, match='empty reply 3 times'):
            await agent.run('go')


async def test_code_that_was_cut_off_is_not_run() -> None:
    cut_off = Reply(text='```python\nprint("a")\nvalues = [1, 2,', finish='length')
    model = ScriptedModel([cut_off, block('final_answer(1)')])
    async with Agent(model) as agent:
        result = await agent.run('go')
    assert result.steps[0].cell is None
    assert 'cut off' in sent(model, 1)


# Long conversations ---------------------------------------------------------------------------------------------------


async def test_a_large_output_is_truncated_and_kept_in_a_variable_that_the_observation_names() -> None:
    """D11."""
    model = ScriptedModel([block('print("x" * 50_000 + "END")'), block('final_answer(len(output_1))')])
    async with Agent(model, observations=Bounds(tokens=200, lines=50)) as agent:
        result = await agent.run('go')
    assert 'output_1' in sent(model, 1)
    assert 'END' in sent(model, 1)
    assert len(sent(model, 1)) < 10_000
    assert result.output == 50_004


async def test_a_long_conversation_is_compacted_and_the_users_words_stay() -> None:
    task = f'Remember the word aardvark. {"Be careful. " * 30}'
    steps = [block(f'print({number}, "word " * 400)') for number in range(12)]
    model = ScriptedModel([*steps, block('final_answer(1)')], context_tokens=4000)
    seen: list[str] = []
    async with Agent(model, hooks=[lambda event: seen.append(event.kind)]) as agent:
        result = await agent.run(task)
    assert result.output == 1
    assert 'compacted' in seen
    from habilis.models.tokens import count_message_tokens

    assert all(count_message_tokens(request.messages) < 4000 for request in model.requests)
    assert all(task.strip() in sent(model, number) for number in range(len(model.requests)))


async def test_an_overflow_compacts_once_and_then_is_an_error() -> None:
    steps: list[str | Exception] = [block(f'print({number}, "word " * 300)') for number in range(5)]
    model = ScriptedModel([*steps, ContextOverflow('too long'), block('final_answer(1)')])
    async with Agent(model) as agent:
        assert (await agent.run('go')).output == 1
    assert 'Earlier steps, shortened' in sent(model, -1)
    twice = ScriptedModel([*steps, ContextOverflow('too long'), ContextOverflow('too long')])
    async with Agent(twice) as agent:
        with pytest.raises(ContextOverflow):
            await agent.run('go')


@pytest.mark.parametrize('how', ['history', 'session'])
async def test_the_steps_of_an_earlier_run_are_shortened_when_they_no_longer_fit(how: str) -> None:
    store = MemoryStore()
    roomy = ScriptedModel([*(block(f'print({n}, "y " * 3000)') for n in range(6)), block('final_answer(1)')])
    async with Agent(roomy, journal=store) as agent:
        first = await agent.run('Remember the word aardvark.', session='s')
    model = ScriptedModel([ContextOverflow('too long'), block('final_answer(2)')], context_tokens=4096)
    async with Agent(model, journal=store) as agent:
        if how == 'history':
            second = await agent.run('second', history=first.messages)
        else:
            second = await agent.run('second', session='s')
    assert second.output == 2
    assert len(sent(model, -1)) < 8000
    assert 'aardvark' in sent(model, -1)


async def test_what_was_sent_stays_the_beginning_of_what_is_sent_next() -> None:
    """B13: the prefix is byte-stable across steps."""
    model = ScriptedModel([block(f'print({number})') for number in range(4)] + [block('final_answer(1)')])
    async with Agent(model) as agent:
        await agent.run('go')
    texts = [[(message.role, message.text) for message in request.messages] for request in model.requests]
    for before, after in pairwise(texts):
        assert after[: len(before)] == before
    assert all(sum(message.cache for message in request.messages) <= 4 for request in model.requests)


# The end of things ----------------------------------------------------------------------------------------------------


async def test_cancelling_a_run_leaves_nothing_behind() -> None:
    """I16."""
    model = ScriptedModel([block('import time\ntime.sleep(60)')])
    agent = Agent(model, workspace=True)
    task = asyncio.create_task(agent.run('go'))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not agent._runner._open  # pyright: ignore[reportPrivateUsage]
    await agent.close()


async def test_a_model_error_leaves_a_run_that_can_be_resumed() -> None:
    model = ScriptedModel([block('n = 5\nprint(n)'), ModelUnavailable('the server is away'), block('final_answer(n)')])
    async with Agent(model) as agent:
        run = await agent.start('go')
        await run.step()
        with pytest.raises(ModelUnavailable):
            await run.step()
        assert (await agent.resume(run.id)).output == 5


async def test_two_agents_share_a_sandbox_and_each_has_its_own_tools() -> None:
    """C22."""

    def hers() -> str:
        return 'from the planner'

    def his() -> str:
        return 'from the builder'

    async with await Sandbox.create(workspace=True) as sandbox:
        first = ScriptedModel([block('open("plan.txt", "w").write(hers())\nfinal_answer("written")')])
        second = ScriptedModel([block('final_answer(open("plan.txt").read() + ", " + his())')])
        async with (
            Agent(first, sandbox=sandbox, tools=[hers]) as planner,
            Agent(second, sandbox=sandbox, tools=[his]) as builder,
        ):
            one = await planner.run('write')
            two = await builder.run('read')
        assert (one.output, two.output) == ('written', 'from the planner, from the builder')
        assert not sandbox.closed


async def test_one_agent_drives_two_sandboxes_and_moves_a_file_between_them() -> None:
    """C20."""
    code = """open("data.txt", "w").write("7 8 9")
print(copy_file("data.txt", "maker", "reader"))
final_answer(run_in("reader", "sum(map(int, open('data.txt').read().split()))"))"""
    async with await Sandbox.create(workspace=True) as maker, await Sandbox.create(workspace=True) as reader:
        async with Agent(ScriptedModel([block(code)]), sandbox={'maker': maker, 'reader': reader}) as agent:
            result = await agent.run('go')
        assert result.output == '24'
        assert await reader.download('data.txt') == b'7 8 9'


async def test_an_agent_without_a_task_or_after_its_end_says_so() -> None:
    agent = Agent(ScriptedModel(['x']))
    with pytest.raises(AgentError, match='empty'):
        await agent.run('  \n')
    await agent.close()
    with pytest.raises(AgentError, match='closed'):
        await agent.run('go')


async def test_run_sync_works_inside_a_running_loop() -> None:
    """I8."""
    with Agent(ScriptedModel([block('final_answer("here")')])) as agent:
        assert agent.run_sync('go').output == 'here'


@pytest.mark.one_protocol
async def test_many_runs_at_once_do_not_mix() -> None:
    model = ScriptedModel(
        lambda messages: (
            block(f'x = {messages[1].text.split()[3]}\nprint(x)') if len(messages) == 2 else block('final_answer(x)')
        )
    )
    async with Agent(model) as agent:
        results = await asyncio.gather(*(agent.run(f'the number is {number}') for number in range(50)))
    assert [result.output for result in results] == list(range(50))


async def test_stream_gives_the_events_and_ends_with_the_result() -> None:
    async with Agent(ScriptedModel([block('print("hi")\nfinal_answer(1)')])) as agent:
        events = [event async for event in agent.stream('go')]
    kinds = [event.kind for event in events]
    assert kinds[0] == 'run_started'
    assert kinds[-1] == 'run_finished'
    assert ''.join(event.text for event in events if event.kind == 'output') == 'hi\n'
    assert {'text', 'code', 'cell_finished', 'answer'} <= set(kinds)


async def test_leaving_a_stream_early_stops_the_run() -> None:
    agent = Agent(ScriptedModel(lambda messages: block(f'print({len(messages)})')))
    stream = agent.stream('go')
    async for event in stream:
        if event.kind == 'step_finished':
            break
    await stream.aclose()
    assert not agent._runner._open  # pyright: ignore[reportPrivateUsage]
    await agent.close()


async def test_what_an_agent_inside_a_tool_uses_counts_for_the_outer_run_too() -> None:
    """B15: children are summed."""
    inner = Agent(ScriptedModel([block('final_answer(21)')], name='scripted:small'), name='helper')

    @tool(as_sync=True)
    async def ask_helper(task: str) -> int:
        """Let somebody else do it."""
        return (await inner.run(task)).unwrap()

    model = ScriptedModel([block('print(ask_helper("half"))'), block('final_answer(2 * 21)')], name='scripted:large')
    async with inner, Agent(model, tools=[ask_helper]) as agent:
        result = await agent.run('go')
    assert result.usage.requests == 3
    assert {name: usage.requests for name, usage in result.usage_by_model.items()} == {
        'scripted:large': 2,
        'scripted:small': 1,
    }
    assert {name: usage.requests for name, usage in agent.ledger.by_agent().items()} == {'agent': 2, 'helper': 1}
    assert inner.ledger.total.requests == 1


async def test_the_prompt_says_which_packages_and_hosts_there_are() -> None:
    model = ScriptedModel([block('final_answer(1)')])
    async with Agent(model, sandbox_settings={'network': ['*.example.org']}) as agent:
        await agent.run('go')
    assert 'network access to *.example.org' in model.requests[0].messages[0].text
    assert 'no network' not in model.requests[0].messages[0].text
