"""The model is told about the tools that are enabled, and about no others."""

from habilis.agent import Agent
from habilis.models import ScriptedModel
from habilis.tools import Toolset, tool
from tests.agent.scripts import block, sent


@tool
def search(query: str) -> str:
    """Search the archive."""
    return f'found {query}'


@tool
def send_mail(to: str) -> str:
    """Send a mail."""
    return f'sent to {to}'


@tool(side='model')
def call_taxi(street: str) -> str:
    """Order a taxi."""
    return 'coming'


@tool
def double(number: int) -> int:
    """Twice as much."""
    return 2 * number


def office(*, enabled: bool) -> Toolset:
    return Toolset('office', [send_mail, call_taxi], enabled=enabled)


def last_message(model: ScriptedModel, number: int) -> str:
    return model.requests[number].messages[-1].text


def offered(model: ScriptedModel, number: int) -> set[str]:
    return {function.name for function in model.requests[number].options.functions}


async def test_a_toolset_that_is_disabled_before_the_first_step_is_nowhere_in_the_request() -> None:
    model = ScriptedModel([block('1')])
    async with Agent(model, tools=[search, office(enabled=True)]) as agent:
        run = await agent.start('go')
        run.toolbox.disable('office')
        await run.step()
    text = sent(model, 0)
    assert 'search' in text
    assert 'send_mail' not in text
    assert 'call_taxi' not in text
    assert 'call_taxi' not in offered(model, 0)


async def test_a_toolset_that_is_disabled_later_leaves_the_prompt_and_is_announced_once() -> None:
    model = ScriptedModel([block('1'), block('2'), block('3')])
    async with Agent(model, tools=[search, office(enabled=True)]) as agent:
        run = await agent.start('go')
        await run.step()
        run.toolbox.disable('office')
        await run.step()
        await run.step(can_stop=False)
    assert 'def send_mail' in sent(model, 0)
    assert 'def send_mail' not in sent(model, 1)
    assert last_message(model, 1) == (
        'These functions are no longer available, do not call them: send_mail, call_taxi.'
    )
    assert 'send_mail' not in sent(model, 2)
    assert 'call_taxi' not in sent(model, 2)
    assert 'call_taxi' not in offered(model, 1) | offered(model, 2)


async def test_a_toolset_that_is_enabled_later_is_announced_and_can_be_called(protocol: str) -> None:
    model = ScriptedModel([block('1'), block("print(send_mail('Eve'))"), block('final_answer(3)')])
    async with Agent(model, tools=[search, office(enabled=False)]) as agent:
        run = await agent.start('go')
        await run.step()
        run.toolbox.enable('office')
        await run.step()
        await run.step()
    assert 'send_mail' not in sent(model, 0)
    announced = last_message(model, 1)
    assert 'From now on, these functions are defined for your code too:' in announced
    assert 'def send_mail(to: str) -> str:' in announced
    assert 'def search' not in announced
    assert 'Functions you may call from now on' in announced
    assert 'call_taxi' in (offered(model, 1) if protocol == 'call' else announced)
    assert 'sent to Eve' in (run.steps[1].observation or '')
    assert 'def send_mail' in model.requests[2].messages[0].text
    assert 'From now on' not in sent(model, 2)


async def test_the_note_of_the_policy_follows_too() -> None:
    model = ScriptedModel([block('1'), block('2'), block('3')])
    async with Agent(model, tools=[search, office(enabled=False)], policy='small') as agent:
        run = await agent.start('go')
        await run.step()
        run.toolbox.enable('office')
        run.toolbox.disable('search')
        await run.step()
    before, after = model.requests[0].messages[1].text, model.requests[1].messages[1].text
    assert '- search(' in before
    assert '- send_mail(' not in before
    assert '- search(' not in after
    assert '- send_mail(' in after


async def test_the_prompt_stays_the_same_while_the_tools_do() -> None:
    model = ScriptedModel([block('1'), block('2'), block('3')])
    async with Agent(model, tools=[search, office(enabled=False)]) as agent:
        run = await agent.start('go')
        for _ in range(3):
            run.toolbox.enable('office')
            run.toolbox.disable('office')
            await run.step(tools=[double] if len(run.steps) == 1 else ())
    assert len({request.messages[0].text for request in model.requests}) == 1
    assert 'no longer available' not in sent(model, 2)
