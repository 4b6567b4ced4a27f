"""Code runs as it was written, an answer is an answer, and no effect is repeated. Each case was seen to go wrong."""

from typing import Any

import pytest

from habilis.agent import Agent
from habilis.models import ScriptedModel
from habilis.tools import people_toolset, tool
from tests.agent.scripts import block, sent

POLICIES = pytest.mark.parametrize('policy', ['general', 'small'])


class Mailbox:
    """Effects that must not happen twice."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    @property
    def tool(self) -> Any:
        @tool(idempotent=False)
        def send(text: str) -> str:
            """Send a mail."""
            self.sent.append(text)
            return 'sent'

        return send


@POLICIES
async def test_a_stub_of_a_tool_is_refused_and_the_tool_is_not_called(policy: str) -> None:
    """J16. The model writes a dry run; it must not become a real one."""
    mails = Mailbox()
    dry_run = 'def send(text):\n    print("would send", text)\n\nsend("hi")\nfinal_answer("tried")'
    model = ScriptedModel([block(dry_run), *[block('print("would send hi")\nfinal_answer("tried")')] * 2])
    async with Agent(model, tools=[mails.tool], policy=policy) as agent:
        result = await agent.run('Try it without sending.')
    assert mails.sent == []
    assert "'send' is a tool and already defined: leave this definition out" in sent(model, 1)
    assert result.steps[0].code == dry_run
    assert result.steps[0].cell is not None
    assert result.steps[0].cell.error is not None


@POLICIES
async def test_a_variable_of_the_user_that_is_assigned_has_the_new_value(policy: str) -> None:
    text = 'Dear {name}, this is the new and much longer text of our letter.'
    model = ScriptedModel([block(f'template = "{text}"\nfinal_answer(template)')])
    async with Agent(model, policy=policy) as agent:
        result = await agent.run('Write a new template.', variables={'template': 'Hello, {name}! ' * 5})
    assert result.output == text


@POLICIES
async def test_code_runs_byte_for_byte(policy: str) -> None:
    """J16: what the interpreter got is what the model wrote, with odd spacing, comments and line ends."""
    code = '# first\nx  =  1 ;  y=2\n\n\ndef show( a,b ):\n\n    return (a , b)\nfinal_answer( show(x,y) )  # done'
    model = ScriptedModel([block(code)])
    async with Agent(model, policy=policy) as agent:
        result = await agent.run('go')
    assert (result.output, result.steps[0].code) == ((1, 2), code)


@POLICIES
@pytest.mark.parametrize('value', ['0', "''", '[]', '{}', 'None', 'False', '0.0'])
async def test_an_empty_answer_is_an_answer_and_the_effect_before_it_happens_once(value: str, policy: str) -> None:
    """J15."""
    mails = Mailbox()
    model = ScriptedModel([block(f'send("mail")\nfinal_answer({value})')])
    async with Agent(model, tools=[mails.tool], policy=policy) as agent:
        result = await agent.run('Send the mail and tell what came back.', max_steps=1)
    assert (result.ended, result.output) == ('answer', eval(value))
    assert mails.sent == ['mail']


@POLICIES
async def test_a_tool_that_is_called_once_need_not_be_called_for_every_value(policy: str) -> None:
    booked: list[str] = []

    @tool(idempotent=False)
    def book_room(name: str) -> str:
        """Book a room."""
        booked.append(name)
        return f'{name} is booked'

    model = ScriptedModel([block('final_answer(book_room("Attic"))')])
    async with Agent(model, tools=[book_room], policy=policy) as agent:
        result = await agent.run('Book the cheapest room: Attic 40, Suite 90.')
    assert (result.output, booked) == ('Attic is booked', ['Attic'])


@POLICIES
@pytest.mark.parametrize(
    ('task', 'code', 'output'),
    [
        ('Give the words in reverse alphabetical order.', 'final_answer(["c", "b", "a"])', ['c', 'b', 'a']),
        (
            'How many orders?\ncity,status\nParis,paid\nParis,open\nRome,paid\n',
            'rows = [("Paris", "paid"), ("Rome", "paid")]\nfinal_answer(rows.count(("Paris", "paid")))',
            1,
        ),
        ('What is one third, rounded to 2 decimals?', 'final_answer(0.3333)', 0.3333),
        ('Join the words without spaces.', 'final_answer("a b")', 'a b'),
        ('What is six times seven?', 'x = 6 * 7\nfinal_answer(42)', 42),
    ],
)
async def test_an_answer_is_not_compared_with_the_words_of_the_task(
    task: str, code: str, output: object, policy: str
) -> None:
    model = ScriptedModel([block(code)])
    async with Agent(model, policy=policy) as agent:
        assert (await agent.run(task, max_steps=1)).output == output


@POLICIES
async def test_words_with_a_number_are_an_answer(policy: str) -> None:
    async with Agent(ScriptedModel(['Mozart was born in 1756.']), policy=policy) as agent:
        assert (await agent.run('When was Mozart born?', max_steps=1)).output == 'Mozart was born in 1756.'


@POLICIES
async def test_a_question_that_was_answered_is_not_asked_again(policy: str) -> None:
    ask = block('name = ask_user("Which city?")\nprint(name)')
    model = ScriptedModel([ask, block('final_answer("Rome")')])
    async with Agent(model, tools=[people_toolset()], policy=policy) as agent:
        asked = await agent.run('Ask me for a city.')
        assert asked.ended == 'question'
        assert (await agent.resume(asked.run_id, 'Rome')).output == 'Rome'


@POLICIES
async def test_polling_does_not_end_the_run(policy: str) -> None:
    states = iter(['running', 'running', 'running', 'done'])

    @tool
    def job_status(job: str) -> str:
        """The state of a job."""
        return next(states)

    poll = block('print(job_status("j1"))')
    model = ScriptedModel([poll, poll, poll, poll, block('final_answer("done")')])
    async with Agent(model, tools=[job_status], policy=policy) as agent:
        result = await agent.run('Wait for the job.')
    assert (result.output, len(result.steps)) == ('done', 5)


@POLICIES
async def test_the_temperature_of_the_user_is_never_overridden(policy: str) -> None:
    model = ScriptedModel([block('1 / 0')] * 3 + [block('final_answer(1)')])
    async with Agent(model, policy=policy) as agent:
        await agent.run('go')
    assert {request.options.temperature for request in model.requests} == {None}
