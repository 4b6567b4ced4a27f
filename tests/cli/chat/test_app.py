"""A chat: turns, errors, the memory, and what is left for the next chat."""

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import pytest

from habilis.cli.chat.app import ChatApp
from habilis.cli.run.request import CommandRequest, ToolNames
from habilis.core.errors import JournalError, ModelUnavailable, RunBusy
from habilis.memory import Memory
from habilis.sandbox import Sandbox, backends
from habilis.sandbox.process import levels
from habilis.tools import tool
from tests.cli.chat import code
from tests.cli.chat.people import Chats, Person, turns
from tests.cli.png_file import png
from tests.place import Place
from tests.requirements import require_namespaces


async def test_turns_share_their_variables_and_are_saved_verbatim(
    chats: Chats, capsys: pytest.CaptureFixture[str]
) -> None:
    replies = ['Hello **you**.', code("x = 41\nprint('working')\nfinal_answer(x)"), code('final_answer(x + 1)')]
    assert await chats.chat(Person('hi  there', 'Set x.', 'And one more?'), replies) == 0
    shown = capsys.readouterr().out
    assert re.search(r'> hi  there\nHello \*\*you\*\*.\n> Set x.\n│ x = 41\n│ print', shown)
    assert re.search(r'working\nstep 1 · .* code .* s\n41\n', shown)
    assert '\n42\n' in shown
    assert await turns() == [
        ('user', 'hi  there'),
        ('assistant', 'Hello **you**.'),
        ('user', 'Set x.'),
        ('assistant', '41'),
        ('user', 'And one more?'),
        ('assistant', '42'),
    ]


async def test_what_was_sent_stays_a_prefix_of_what_is_sent_next(chats: Chats) -> None:
    async with Memory() as memory:
        await memory.add_fact('The boat is called Nordlicht')
    await chats.chat(
        Person('What is the boat called?', 'Who calls the boat?', 'Thanks!'), ['Nordlicht.', 'Ann.', 'Bye.']
    )
    first, second, third = (chats.model.requests[number].messages for number in range(3))
    assert [message.text for message in second[: len(first)]] == [message.text for message in first]
    assert [message.text for message in third[: len(second)]] == [message.text for message in second]
    assert chats.sent(0) == [f'What is the boat called?\n\nFrom the memory:\n{_line("The boat is called Nordlicht")}']
    assert chats.sent(1)[-1] == 'Who calls the boat?'  # nothing is given twice


def _line(text: str) -> str:
    return f'- [fact, {time.strftime("%Y-%m-%d")}] {text}'


async def test_a_turn_that_stops_at_a_limit_names_the_setting_and_the_chat_continues(
    chats: Chats, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.environment(HABILIS_MAX_STEPS='1')
    await chats.chat(Person('Count.', 'Thanks.'), [code("print('one')"), 'Welcome.'])
    shown = capsys.readouterr().out
    assert 'stopped at the limit of 1 step without an answer; raise the limit with HABILIS_MAX_STEPS=2' in shown
    assert 'Welcome.' in shown


async def test_an_error_of_the_model_does_not_end_the_chat_and_the_turn_continues_where_it_stopped(
    chats: Chats, capsys: pytest.CaptureFixture[str]
) -> None:
    down = ModelUnavailable('the server is down')
    replies = [code("print('once')"), down, 'It is done.', 'Welcome.']
    assert await chats.chat(Person('Do it.', 'Do it.', 'Thanks.'), replies) == 0
    shown = capsys.readouterr().out
    assert shown.count('\nonce\n') == 1
    assert 'error: the server is down' in shown
    assert 'It is done.' in shown
    assert 'Welcome.' in shown
    assert sum('Do it.' in text for text in chats.sent(2)) == 1


async def test_a_message_after_a_stopped_turn_continues_it(chats: Chats, capsys: pytest.CaptureFixture[str]) -> None:
    async def reply(messages: object) -> str:
        if len(chats.model.requests) == 1:
            await asyncio.sleep(600)
        return 'With blue, then.'

    person = Person()
    person.messages = [
        lambda: person.stop_when(lambda: len(chats.model.requests) == 1),
        'Paint it red.',
        'No, blue.',
    ]
    assert await chats.chat(person, reply) == 0
    assert 'stopped; your next message' in capsys.readouterr().out
    assert chats.sent(1) == ['Paint it red.', 'No, blue.']


async def test_code_that_was_stopped_is_not_run_again_for_another_message(chats: Chats) -> None:
    person = Person()
    loop = "x = 2\nremember('It loops')\nwhile True: pass"
    person.messages = [
        'Set x.',
        lambda: person.stop_when(lambda: len(chats.model.requests) == 2),
        'Loop.',
        'Do not loop.',
        'And now?',
    ]
    await chats.chat(
        person, [code('x = 1\nfinal_answer(x)'), code(loop), code('final_answer(x)'), code('final_answer(x)')]
    )
    stopped, said = chats.sent(2)[-2:]
    assert 'it may have run, in part or to its end, or not' in stopped
    assert said == 'Do not loop.'
    assert [text for role, text in await turns() if role == 'assistant'] == ['1', '1', '1']


async def test_the_code_of_a_stopped_turn_ends_and_undo_takes_the_turn_back(chats: Chats) -> None:
    person = Person()
    replies = [code('x = 1\nfinal_answer(x)'), code('x = 2\nwhile True: pass'), code('final_answer(x)')]
    person.messages = [
        'Set x.',
        lambda: person.stop_when(lambda: len(chats.model.requests) == 2),
        'Loop.',
        '/undo',
        'What is x?',
    ]
    await chats.chat(person, replies)
    assert [text for role, text in await turns() if role == 'assistant'] == ['1', '1']
    assert 'Loop.' not in ''.join(chats.sent(2))


async def test_the_sandbox_is_started_while_the_person_types(chats: Chats, monkeypatch: pytest.MonkeyPatch) -> None:
    started, create = asyncio.Event(), Sandbox.create

    async def create_and_say(*arguments: Any, **settings: Any) -> Sandbox:
        sandbox = await create(*arguments, **settings)
        started.set()
        return sandbox

    class Typist(Person):
        async def read(self) -> str | None:
            await asyncio.wait_for(started.wait(), 100)
            return await super().read()

    monkeypatch.setattr(Sandbox, 'create', create_and_say)
    assert await chats.chat(Typist(), []) == 0


async def test_open_tasks_are_shown_at_the_start(chats: Chats, capsys: pytest.CaptureFixture[str]) -> None:
    async with Memory() as memory:
        await memory.add_task('Paint the boat')
    person = Person()
    await chats.chat(person, [])
    assert 'Paint the boat' in capsys.readouterr().out
    assert person.places == ['scripted:script · wasm']


async def test_every_file_of_a_message_is_there_for_the_code_and_its_start_for_the_model(
    chats: Chats, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    (place.folder / 'sales.csv').write_text('region,amount\nnorth,1\n')
    (place.folder / 'long.csv').write_text('1\n' * 20_000)
    (place.folder / 'data.bin').write_bytes(b'\0\1')
    (place.folder / 'some folder').mkdir()
    (place.folder / 'some folder' / 'inside.txt').write_text('x')
    person = Person('Add up @sales.csv, please, not @nobody.', 'Count @long.csv', 'Look at @data.bin @"some folder"')
    replies = [
        code("final_answer(open('/inputs/sales.csv').read())"),
        code("final_answer(len(open('/inputs/long.csv').readlines()))"),
        code("final_answer(open('/inputs/data.bin', 'rb').read())"),
    ]
    await chats.chat(person, replies)
    assert '- /inputs/sales.csv (text/csv, 22 bytes):\n<text>\nregion,amount\nnorth,1\n</text>' in chats.sent(0)[0]
    assert 2000 < len(chats.sent(1)[-1]) < 5000  # of 40,000
    assert '<folder name="some folder">\ninside.txt (1 bytes)\n</folder>' in chats.sent(2)[-1]
    assert [text for role, text in await turns() if role == 'assistant'][1:] == ['20000', "b'\\x00\\x01'"]
    assert 'attached sales.csv (22 bytes) as /inputs/sales.csv\n' in capsys.readouterr().out


async def test_an_image_for_a_model_that_does_not_see_is_there_for_the_code_and_the_chat_says_so(
    chats: Chats, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    (place.folder / 'plot.png').write_bytes(png())
    await chats.chat(
        Person('What is in @plot.png?'), [code("final_answer(len(open('/inputs/plot.png', 'rb').read()))")]
    )
    shown = capsys.readouterr().out
    assert 'scripted:script does not see images; its code can open plot.png\n' in shown
    assert f'\n{len(png())}\n' in shown


async def test_a_message_with_a_file_that_is_not_there_is_not_sent_and_stays_in_the_prompt(
    chats: Chats, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    (place.folder / 'sales.csv').write_text('1')
    person = Person('Add up @sale.csv')
    await chats.chat(person, [])
    assert person.kept == ['Add up @sale.csv']
    assert 'error: there is no file sale.csv: did you mean @sales.csv?' in capsys.readouterr().out
    assert await turns() == []


@pytest.mark.parametrize('refused', [None, 'No permissions to create a new namespace'])
async def test_the_code_reads_files_of_a_message_in_a_process_with_namespaces_and_without(
    chats: Chats, place: Place, monkeypatch: pytest.MonkeyPatch, refused: str | None
) -> None:
    if refused is None:
        require_namespaces()

    def why_unusable(program: str) -> str | None:
        return refused

    monkeypatch.setattr(levels, 'why_unusable', why_unusable)
    backends.backend.cache_clear()
    (place.folder / 'long.csv').write_text('1\n' * 20_000)
    replies = [code("final_answer(len(open('/inputs/long.csv').readlines()))"), code('import csv\nfinal_answer("csv")')]
    try:
        await chats.chat(Person('Count @long.csv', 'Go on'), replies, settings={'sandbox': 'process'})
    finally:
        backends.backend.cache_clear()
    assert [text for role, text in await turns() if role == 'assistant'] == ['20000', 'csv']


async def test_the_memory_is_there_in_the_next_chat(chats: Chats) -> None:
    await chats.chat(Person('I am Ann.'), [code("remember('The user is called Ann')\nfinal_answer('Hi.')")])
    await chats.chat(Person('Who am I?'), [code("final_answer(recall('user name')[0]['text'])")])
    assert (await turns())[-1] == ('assistant', 'The user is called Ann')


async def test_a_tool_that_needs_approval_asks_in_the_chat(chats: Chats) -> None:
    async with Memory() as memory:
        fact = await memory.add_fact('The boat is blue')
    person = Person('Forget it.', 'Forget it now.', answers=['n', 'y'])
    call = code(f"final_answer(forget('{fact.id}'))")
    await chats.chat(person, [call, 'You said no.', call])
    assert len(person.questions) == 2
    assert person.questions[0].startswith(f"\nforget(id='{fact.id}')\n")
    assert '% context' in person.places[1], 'of the resumed turn'
    assert person.questions[0].endswith('[y/N/cell/always/session/stop] ')
    async with Memory() as memory:
        assert await memory.facts() == []


async def test_a_question_whose_turn_was_stopped_is_asked_again_and_other_calls_only_if_the_person_agrees(
    chats: Chats, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person(answers=['blue'])
    answer, dropped = person.ask, asyncio.Event()

    async def wait(_: str) -> None:
        monkeypatch.setattr(person, 'ask', answer)
        person.stop_when(lambda: True)
        await dropped.wait()

    monkeypatch.setattr(person, 'ask', wait)
    monkeypatch.setattr(person, 'drop_question', dropped.set)
    person.messages += ['Paint it.', 'Paint it.']
    await chats.chat(person, [code("final_answer(ask_user('Which colour?'))")])
    assert (await turns())[-1] == ('assistant', 'blue')

    person = Person(answers=['n', 'y'])
    calls = 0

    @tool(idempotent=False)
    async def send() -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            person.stop_when(lambda: True)
            await asyncio.sleep(600)
        return f'sent {calls}'

    def load(names: object, *, folder: str) -> list[object]:
        return [send]

    monkeypatch.setattr('habilis.cli.chat.app.load_tools', load)
    names = ToolNames(names=('x:send',), folder='.')
    person.messages += ['Send it.', 'Send it.', 'Send it.']
    await chats.chat(person, [code('final_answer(await send())')], tools=names)
    assert 'Did it take effect?' in person.questions[0]
    assert person.questions[1].endswith('\nRun it again? [y/N] ')
    assert (await turns())[-1] == ('assistant', 'sent 2')


async def test_a_question_of_the_model_waits_for_the_answer(chats: Chats) -> None:
    person = Person('Paint it.', answers=['blue'])
    await chats.chat(person, [code("final_answer(ask_user('Which colour?'))")])
    assert 'Which colour?' in person.questions[0]
    assert (await turns())[-1] == ('assistant', 'blue')


async def test_a_picture_is_saved_and_its_path_printed_and_in_the_folder_of_the_user_only_in_modes_that_may(
    chats: Chats, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    draws = "class Picture:\n    def _repr_png_(self): return b'\\x89PNG data'\ndisplay(Picture())\nfinal_answer(1)"
    folder = place.folder / 'work'
    folder.mkdir()
    tried: list[dict[str, Any]] = [{}, {'workspace': 'work', 'mode': 'ask'}, {'workspace': 'work', 'mode': 'edits'}]
    for options in tried:
        await chats.chat(Person('Draw.'), [code(draws)], **options)
        found = re.search(r'\n(.*\.png) \(new, 9 bytes\)\n', capsys.readouterr().out)
        assert found is not None
        assert Path(found[1]).read_bytes() == b'\x89PNG data'
        assert [path.name for path in folder.iterdir()] == (['figure-1.png'] if options.get('mode') == 'edits' else [])


# Resuming -------------------------------------------------------------------------------------------------------------


async def test_the_newest_chat_of_the_folder_is_resumed_with_its_variables(
    chats: Chats, place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    await chats.chat(Person('Set x.'), [code('x = 41\nfinal_answer(x)')])
    (place.folder / 'other').mkdir()
    monkeypatch.chdir(place.folder / 'other')
    await chats.chat(Person('Elsewhere.', answers=['n']), ['Yes.'])
    monkeypatch.chdir(place.folder)
    capsys.readouterr()
    await chats.chat(Person('One more?', answers=['']), [code('final_answer(x + 1)')], resume='')
    shown = capsys.readouterr().out
    assert 'user: Set x.\nassistant: 41\n' in shown
    assert '\n42\n' in shown
    assert any('Set x.' in text for text in chats.sent(0))


async def test_a_failed_turn_is_offered_when_its_chat_is_resumed(
    chats: Chats, capsys: pytest.CaptureFixture[str]
) -> None:
    await chats.chat(Person('Do it.'), [code("print('once')"), ModelUnavailable('down')])
    await chats.chat(Person('Go on.'), ['Done.'], resume='')
    shown = capsys.readouterr().out
    assert 'the last turn is not finished' in shown
    assert shown.count('\nonce\n') == 1
    assert [text for text in chats.sent(0) if text in ('Do it.', 'Go on.')] == ['Do it.', 'Go on.']


async def test_a_call_without_an_approver_is_asked_about_when_the_chat_is_resumed(
    chats: Chats, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Memory() as memory:
        fact = await memory.add_fact('The boat is blue')
    person = Person('Forget it.')
    person.is_present = False
    await chats.chat(person, [code(f"forget('{fact.id}')\nfinal_answer('forgotten')")])
    assert 'habilis runs approve' in capsys.readouterr().out
    person = Person('Thanks.', answers=['y'])
    await chats.chat(person, ['Welcome.'], resume='')
    shown = capsys.readouterr().out
    assert person.questions[0].startswith(f"\nforget(id='{fact.id}')\n")
    assert '% context' in person.places[1], 'of the resumed turn'
    assert 'Welcome.' in shown
    assert ('assistant', 'forgotten') in await turns()
    async with Memory() as memory:
        assert await memory.facts() == []


async def test_a_chat_in_the_middle_of_a_turn_is_not_opened_a_second_time(chats: Chats) -> None:
    busy: list[BaseException] = []

    async def reply(messages: object) -> str:
        try:
            await ChatApp(Person('Me too.'), CommandRequest(), resume='').run()
        except RunBusy as error:
            busy.append(error)
        return 'Done.'

    await chats.chat(Person('Do it.'), reply)
    assert 'is in the middle of a turn' in str(busy[0])
    assert await turns() == [('user', 'Do it.'), ('assistant', 'Done.')]


async def test_another_users_chat_cannot_be_resumed(chats: Chats) -> None:
    await chats.chat(Person('I am Ann.'), ['Hi.'], settings={'user': 'ann'})
    async with Memory(user='ann') as memory:
        [session] = await memory.sessions()
    for resume in (session.session, ''):
        with pytest.raises(JournalError, match=r'no such conversation|no chat has begun'):
            await chats.chat(Person(), [], resume=resume, settings={'user': 'bob'})


async def test_nothing_to_resume_is_said_in_one_line(chats: Chats) -> None:
    with pytest.raises(Exception, match='no chat has begun in this folder'):
        await chats.chat(Person(), [], resume='')
    with pytest.raises(Exception, match='no such conversation: monday'):
        await chats.chat(Person(), [], resume='monday')
