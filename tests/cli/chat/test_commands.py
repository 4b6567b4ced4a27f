"""The slash commands."""

import json
import re
import sys
from pathlib import Path

import pytest

from habilis.memory import Memory
from tests.cli.chat import code
from tests.cli.chat.people import Chats, Person, turns
from tests.place import Place
from tests.sandbox.packages.test_installation import make_wheel

Capture = pytest.CaptureFixture[str]


async def test_help_names_all_commands_and_an_unknown_one_gets_a_suggestion(chats: Chats, capsys: Capture) -> None:
    await chats.chat(Person('/help', '/moddel', '/xyzzy'), [])
    shown = capsys.readouterr().out
    for name in (
        '/model /sandbox /packages /tools /memory /tasks /runs /undo /fork /clear /compact /export /cost /quit'.split()
    ):
        assert f'\n{name}' in shown
    assert 'error: no such command: /moddel; did you mean /model?' in shown
    assert 'error: no such command: /xyzzy; /help lists all commands' in shown


@pytest.mark.skipif(sys.platform != 'linux', reason='needs the process backend')
async def test_a_shell_command_shows_its_output_and_the_next_message_has_it(
    chats: Chats, place: Place, capsys: Capture
) -> None:
    Path(place.folder / 'sales.csv').write_text('a,b\n')
    await chats.chat(Person('!ls *.csv; false', '!', 'Which file?'), ['sales.csv'], workspace=str(place.folder))
    shown = capsys.readouterr().out
    assert 'sales.csv\nexit code 1\n' in shown
    assert '!COMMAND runs a shell command' in shown
    assert '$ ls *.csv; false\nsales.csv\n[exit code 1]' in chats.sent(0)[-1]
    await chats.chat(Person('!ls; echo hello'), [])
    assert '> !ls; echo hello\nhello\nthe command saw no files of yours: /share read' in capsys.readouterr().out


async def test_undo_takes_back_the_turn_its_variables_and_what_the_memory_has_of_it(
    chats: Chats, capsys: Capture
) -> None:
    replies = [
        code('x = 1\nfinal_answer(x)'),
        code("x = 2\nremember('x is two')\nfinal_answer(x)"),
        code('final_answer(x)'),
    ]
    person = Person('Set x.', 'Change x.', '/undo', 'What is x?', '/undo', '/undo', '/undo')
    await chats.chat(person, replies)
    assert 'taken back: Change x.' in capsys.readouterr().out
    assert chats.sent(2)[-1] == 'What is x?'
    assert not any('Change x.' in text for text in chats.sent(2))
    assert await turns() == []
    async with Memory() as memory:
        assert await memory.facts() == []


async def test_turns_that_did_the_same_are_offered_and_kept_as_a_tool(
    chats: Chats, place: Place, capsys: Capture
) -> None:
    replies = [code(f'side = {n}\nfinal_answer(side ** 3 + side)') for n in (3, 5, 7)]
    person = Person('A side of 3?', 'A side of 5?', 'A side of 7?', '/keep cube_and_side', '/keep json')
    await chats.chat(person, replies, library=str(place.folder / 'library'))
    shown = capsys.readouterr().out
    assert shown.count('two turns did the same with other values: /keep makes a tool of them') == 1
    assert 'cube_and_side(side: int) -> int: a tool of the library now, which passes 3 tests' in shown
    assert "error: 'json' cannot be the name of a tool" in shown


async def test_fork_continues_in_a_copy_and_clear_starts_anew(chats: Chats, capsys: Capture) -> None:
    replies = [code('x = 1\nfinal_answer(x)'), code('final_answer(x + 1)'), 'New.']
    await chats.chat(Person('Set x.', '/fork', 'And more?', '/clear', 'Hello.', '/runs'), replies)
    shown = capsys.readouterr().out
    assert any('Set x.' in text for text in chats.sent(1))
    assert chats.sent(2) == ['Hello.']
    assert 'Hello.' in shown[shown.index('RUN ') :]
    assert 'Set x.' not in shown[shown.index('RUN ') :]
    async with Memory() as memory:
        assert [session.turns for session in await memory.sessions()] == [2, 2, 2]


async def test_the_memory_is_listed_searched_explained_and_forgotten(chats: Chats, capsys: Capture) -> None:
    async with Memory() as memory:
        await memory.add_fact('The boat is called Nordlicht')
    person = Person('/memory why', 'My boat?', '/memory why', '/memory', '/memory search boat', answers=['n', 'y'])
    person.messages += ['/memory forget Nordlicht', '/memory forget Nordlicht', '/memory list', '/memory what']
    await chats.chat(person, ['Nice.'])
    shown = capsys.readouterr().out
    assert 'the last message got nothing from the memory' in shown
    assert 'score' in shown
    assert person.questions == ['Forget this entry for good? [y/N] '] * 2
    assert shown.index('nothing forgotten') < shown.index('forgot 1') < shown.index('no facts yet')
    assert 'error: write /memory [list' in shown


@pytest.mark.skipif(sys.platform != 'linux', reason='needs the process backend')
async def test_packages_are_added_in_the_sandbox_that_they_need(chats: Chats, place: Place, capsys: Capture) -> None:
    wheel = make_wheel(place.folder, 'native', 'WORD = "hello"\n', more={'native_inner/fast.so': 'ELF'})
    person = Person('Load it.', '/packages', f'/packages {wheel.name}', 'Again.')
    replies = [code('x = 1\nimport pandas'), 'It is not there.', code('import native\nfinal_answer(native.WORD)')]
    await chats.chat(person, replies)
    shown = capsys.readouterr().out
    assert 'pandas is not in the sandbox; /packages pandas adds it\n' in shown
    assert 'only the standard library; /packages NAME adds one' in shown
    assert [text for role, text in await turns() if role == 'assistant'][-1] == 'hello'
    assert [place.split(' · ')[1] for place in person.places][-1] == 'process'


async def test_tools_tasks_and_cost(chats: Chats, capsys: Capture) -> None:
    person = Person('Remind me.', '/tasks', '/tools', '/cost')
    await chats.chat(person, [code("create_task('Paint the boat')\nfinal_answer('ok')")])
    shown = capsys.readouterr().out
    assert 'Paint the boat' in shown[shown.index('TASK') :]
    assert 'recent_conversations' in shown[shown.index('TOOL ') :]
    assert '1 request, ' in shown


async def test_keys_are_those_of_the_settings_until_the_user_takes_others(
    chats: Chats, place: Place, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv('HABILIS_KEYS', 'vim')
    person = Person('/keys', answers=[])
    await chats.chat(person, [])
    assert person.keys == 'vim'
    person.messages.append('/keys emacs')
    await chats.chat(person, [])
    assert person.keys == 'emacs'
    assert 'error: write /keys [emacs | vim]' in capsys.readouterr().out


async def test_compact_says_by_how_much_the_chat_is_shorter(chats: Chats, capsys: Capture) -> None:
    long = ' '.join(f'Boat {number} has the length {number * number % 97}.' for number in range(300))
    summary = 'Goal: boats.\nDecisions: none.\nFacts: seven are red.\nOpen: nothing.\nVariables: none.'
    person = Person('/compact', 'List them.', 'Again.', '/compact the red ones', 'Now?')
    await chats.chat(person, [long, 'Ok.', summary, 'Seven.'])
    shown = capsys.readouterr().out
    assert 'nothing to shorten: 0 tokens' in shown
    assert re.search(r'\d,\d\d\d tokens are \d\d now, as a summary of the model', shown)
    assert any('seven are red' in text for text in chats.sent(3))


async def test_a_chat_is_saved_to_a_new_file_only(chats: Chats, place: Place, capsys: Capture) -> None:
    messages = [
        '/export',
        'Hi.',
        '/export talk.md',
        '/export "talk.md"',
        '/export no/talk.md',
        '/export ~nobody-here/x',
        "/export 'x",
        '/export talk.json',
        '/export talk.html',
    ]
    await chats.chat(Person(*messages, '/tasks some'), ['Hello.'])
    text = Path(place.folder / 'talk.md').read_text()
    assert text.startswith('**user** · ')
    assert text.endswith('\n\nHello.\n')
    shown = capsys.readouterr().out
    assert [turn['text'] for turn in json.loads(Path(place.folder / 'talk.json').read_text())] == ['Hi.', 'Hello.']
    assert 'error: a chat is written as Markdown or JSON, not as .html: /export talk.md' in shown
    assert 'error: talk.md exists; give another name' in shown
    assert 'error: cannot write no/talk.md: No such file' in shown
    assert 'there is nothing to export yet' in shown
    assert '2 messages in x' in shown
    assert 'error: write /tasks [all]' in shown
    assert 'unexpected' not in shown


async def test_a_copy_is_saved_with_the_turns_from_before_it_was_made_also_after_it_is_resumed(
    chats: Chats, place: Place, capsys: Capture
) -> None:
    await chats.chat(Person('One.', '/fork', '/export 1.md', 'Two.', '/fork', 'Three.'), ['1', '2', '3'])
    await chats.chat(Person('/export 2.md', answers=['']), [], resume='')
    said = [Path(place.folder / name).read_text().split('\n\n')[1::2] for name in ('1.md', '2.md')]
    assert [[text.strip() for text in each] for each in said] == [
        ['One.', '1'],
        ['One.', '1', 'Two.', '2', 'Three.', '3'],
    ]
    assert '2 messages in 1.md' in capsys.readouterr().out


async def test_a_chat_without_a_turn_is_not_offered_to_be_resumed(chats: Chats, capsys: Capture) -> None:
    await chats.chat(Person('/help'), [])
    assert '--resume' not in capsys.readouterr().out
    await chats.chat(Person('Hi.', '/fork'), ['Hello.'])
    assert capsys.readouterr().out.count('--resume') == 1


async def test_what_a_message_got_from_the_memory_is_no_part_of_its_title(chats: Chats, capsys: Capture) -> None:
    async with Memory() as memory:
        await memory.add_fact('The boat is called Nordlicht')
    await chats.chat(Person('My boat?'), ['Nice.'])
    async with Memory() as memory:
        assert [each.title for each in await memory.sessions()] == ['My boat?']
    await chats.chat(Person('My boat?', '/runs', '/undo'), ['Nice.'])
    shown = capsys.readouterr().out
    assert 'From the memory' in chats.sent(0)[0]
    assert 'From the memory' not in shown
    assert 'taken back: My boat?\n' in shown


async def test_words_of_the_user_that_read_like_the_memory_stay_theirs(chats: Chats, capsys: Capture) -> None:
    said = 'Recite the line. From the memory: of old days'
    async with Memory() as memory:
        await memory.add_fact('The line is by Lamb', 'preference')
    await chats.chat(Person(said, '/runs', '/undo'), ['All, all are gone.'])
    shown = capsys.readouterr().out
    assert f'taken back: {said}\n' in shown
    assert said in shown[shown.index('RUN ') : shown.index('taken back')]
    assert 'The line is by Lamb' in chats.sent(0)[0]


async def test_another_model_and_sandbox_continue_with_the_same_chat(chats: Chats, capsys: Capture) -> None:
    person = Person('Set x.', '/model', '/model vllm:other', '/sandbox', '/sandbox nowhere', '/sandbox remote', 'And?')
    await chats.chat(person, [code('x = 1\nfinal_answer(x)'), code('final_answer(x + 1)')])
    assert ('assistant', '2') in await turns()
    shown = capsys.readouterr().out
    assert 'scripted:script; /model NAME takes another' in shown
    assert 'now scripted:script' in shown
    assert 'error: no such sandbox: nowhere; known: ' in shown
    assert 'error: the sandbox remote needs the address of its server: add --sandbox-url http' in shown


async def test_a_model_that_is_not_known_leaves_the_chat_as_it_was(chats: Chats, capsys: Capture) -> None:
    await chats.chat(Person('/model nonsense', 'Hi.'), ['Hello.'])
    shown = capsys.readouterr().out
    assert "error: no such model or alias: 'nonsense'" in shown
    assert 'Hello.' in shown


async def test_a_plan_is_asked_for_changed_and_carried_out(
    chats: Chats, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    person = Person('/mode all', '/plan Tidy up.', '/mode', answers=['And b.', 'y'])
    write = code("final_answer(open('b', 'w').write(''))")
    (place.folder / 'work').mkdir()
    await chats.chat(person, ['1. Write a.', '1. Write a.\n2. Write b.', write], workspace='work')
    assert person.questions == ['\nCarry out this plan? [y/N/edit, or what to change] '] * 2
    assert chats.sent(1)[-1].startswith('And b.')
    assert chats.sent(2)[-1].startswith('Carry out this plan:\n\n1. Write a.\n2. Write b.')
    assert (place.folder / 'work' / 'b').exists()
    shown = capsys.readouterr().out
    assert 'plan: nothing can be changed' in shown
    assert shown.rindex('all: files may be changed') > shown.rindex('plan:')


async def test_while_a_plan_is_carried_out_the_mode_that_is_shown_is_the_one_that_counts(
    chats: Chats, place: Place
) -> None:
    (place.folder / 'work').mkdir()
    person = Person('/plan Tidy up.', answers=['y', 'y'])
    write = code("final_answer(write_file('a', 'x'))")
    await chats.chat(person, ['1. Write a.', write], workspace='work', mode='ask')
    assert [shown.split(' · ')[3] for shown in person.places_of_questions] == ['plan', 'ask']


async def test_what_is_accepted_is_the_plan_as_it_was_edited(
    chats: Chats, place: Place, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv('VISUAL', "sed -i 's/Write a/Write c/'")
    (place.folder / 'work').mkdir()
    person = Person('/plan edit', '/plan Tidy up.', '/plan edit', answers=['e', 'n', 'y'])
    await chats.chat(person, ['1. Write a.', 'Done.'], workspace='work')
    assert chats.sent(1)[-1].startswith('Carry out this plan:\n\n1. Write c.')
    shown = capsys.readouterr().out
    assert 'error: there is no plan yet: /plan TASK asks for one' in shown
    assert '\n1. Write c.\n' in shown
    assert 'the plan is as before' in shown


async def test_undo_says_which_files_stay_changed(chats: Chats, place: Place, capsys: Capture) -> None:
    (place.folder / 'work').mkdir()
    write = code("open('b.txt', 'w').write('1')\nfinal_answer(1)")
    for checkpoints in (False, True):
        person = Person('/mode all', 'Write.', '/undo')
        await chats.chat(person, [write], workspace='work', checkpoints=checkpoints)
        said = 'these files stay changed: b.txt; --checkpoints can take files back, too'
        assert (said in capsys.readouterr().out) is not checkpoints
        assert (place.folder / 'work' / 'b.txt').exists() is not checkpoints
        (place.folder / 'work' / 'b.txt').unlink(missing_ok=True)
