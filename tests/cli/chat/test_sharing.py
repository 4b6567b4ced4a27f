"""Which folder the code of a chat can read or write, and the instructions in it."""

import pytest

from habilis.assistant.shared_folders import remember_share, remembered_share
from tests.cli.chat import code
from tests.cli.chat.people import Chats, Person, turns
from tests.cli.process import habilis
from tests.place import Place

Capture = pytest.CaptureFixture[str]
READ = code("final_answer(open('note.txt').read())")
WRITE = code("open('note.txt', 'w').write('changed')\nfinal_answer('written')")


@pytest.fixture(autouse=True)
def note(place: Place) -> None:
    """A file in a folder that nobody was asked about yet."""
    remember_share(place.folder, None)
    (place.folder / 'note.txt').write_text('a note')


async def test_the_first_chat_of_a_folder_asks_once_how_to_share_it(
    chats: Chats, place: Place, capsys: Capture
) -> None:
    first, second = Person('Read it.', 'Write it.', answers=['', 'r']), Person('Read it.')
    await chats.chat(first, [READ, WRITE, 'It is read-only.'])
    await chats.chat(second, [READ])
    assert len(first.questions) == 2
    assert first.questions[0].startswith('Share ')
    assert first.questions[0].endswith('/project with the code?\nread, write or no? [r/w/n] ')
    assert second.questions == []
    assert [text for role, text in await turns() if role == 'assistant'] == ['a note', 'It is read-only.', 'a note']
    assert (place.folder / 'note.txt').read_text() == 'a note'
    assert [path.name for path in place.folder.iterdir()] == ['note.txt']  # it is remembered elsewhere
    shown = capsys.readouterr().out
    assert shown.startswith('Habilis 0.1')
    assert '/project (read) · scripted:script · /help\n' in shown


async def test_share_changes_it_now_and_for_later_chats(chats: Chats, place: Place, capsys: Capture) -> None:
    person = Person('/share', '/share write', 'Write it.', '/share no', '/share maybe', 'Read it.', answers=['n', 'y'])
    await chats.chat(
        person, [code("write_file('note.txt', 'changed')\nfinal_answer('written')"), READ, 'There is none.']
    )
    assert (place.folder / 'note.txt').read_text() == 'changed'
    assert 'May write_file be called?' in person.questions[1]  # as in a chat that starts with this share
    assert remembered_share(place.folder) == 'no'
    shown = capsys.readouterr().out
    assert 'error: write /share [read | write' in shown
    assert shown.count('/project (not shared)\n') == 2
    await chats.chat(Person('/share forget'), [])
    assert remembered_share(place.folder) is None


async def test_the_model_and_the_status_know_that_a_folder_is_shared_for_reading_only(chats: Chats) -> None:
    person = Person('Hi.', '/share write', 'Hi again.', '/share no', 'And now?', 'Still?', answers=['r'])
    await chats.chat(person, ['Hello.', 'Hello again.', 'No.', 'Yes.'])
    first, second, third, fourth = (request.messages[-1].text for request in chats.model.requests)
    assert "'note.txt' (6 bytes). Nothing in it can be changed: it is read-only." in first
    assert 'changes need approval: call write_file' in second
    assert third.endswith(' The folder /workspace is no longer shared with your code.')
    assert fourth == 'Still?'
    assert any(place.endswith(' (read)') for place in person.places)
    assert any(place.split(' · ')[3:4] == ['ask'] for place in person.places)


async def test_code_that_finds_no_files_gets_the_person_the_command_that_shares_them(
    chats: Chats, capsys: Capture
) -> None:
    await chats.chat(Person('Read it.', answers=['n']), [code("open('note.txt')"), 'There is none.'])
    shown = capsys.readouterr().out
    assert '/share shares this folder' in shown
    assert '--workspace' not in shown


async def test_the_home_folder_is_asked_about_with_a_warning_until_the_answer_is_no(
    chats: Chats, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('HOME', str(place.folder))
    remember_share(place.folder, 'write')
    person = Person(answers=[''])
    await chats.chat(person, [])
    assert person.questions == [
        'This folder has all your files: keys, mails, everything.\nShare ~ with the code?\nread, write or no? [r/w/N] '
    ]
    await chats.chat(Person(), [])
    assert remembered_share(place.folder) == 'no'


async def test_nothing_is_asked_with_a_workspace_in_a_resumed_chat_or_without_a_terminal(
    chats: Chats, place: Place
) -> None:
    await chats.chat(Person('Read it.'), [READ], workspace=str(place.folder), read_only=True)
    await chats.chat(Person('Write it.'), [WRITE, 'It is read-only.'], resume='')
    assert (place.folder / 'note.txt').read_text() == 'a note'
    (place.folder / 'script.json').write_text('["Hello."]')
    for options in ((), ('--no-workspace',)):
        done = habilis('chat', '--model', 'scripted:script.json', *options, stdin='Hi.\n')
        assert 'Share' not in done.stdout, done.stderr
    assert remembered_share(place.folder) is None


async def test_instructions_are_shown_at_the_start_and_when_they_change(
    chats: Chats, place: Place, capsys: Capture
) -> None:
    file = place.folder / 'AGENTS.md'
    file.write_text('Be brief.')
    person = Person('Hi.', lambda: file.write_text('Be very brief.'), 'Hi again.', 'Bye.', '/share no', answers=['r'])
    await chats.chat(person, ['Hello.', 'Hi.', 'Bye.'])
    shown = capsys.readouterr().out
    assert shown.count('instructions: ') == 3
    assert shown.index('AGENTS.md (9 bytes)') < shown.index('> Hi.')
    assert shown.index('> Hi again.') < shown.index('instructions: AGENTS.md (14 bytes)') < shown.index('> Bye.')
    assert 'instructions: none any more' in shown


def test_a_run_with_a_workspace_has_the_instructions_of_its_project(place: Place) -> None:
    (place.folder / 'AGENTS.md').write_text('Be brief.')
    (place.folder / 'script.json').write_text('["Hello."]')
    done = habilis('run', 'Hi', '--model', 'scripted:script.json', '-w', '.', '--run-id', 'r')
    assert 'instructions: AGENTS.md (9 bytes)' in done.stderr
    assert 'Be brief.' in habilis('runs', 'events', 'r', '--json').stdout


async def test_memory_and_tasks_of_other_folders_stay_out_until_they_are_asked_for(
    chats: Chats, place: Place, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    keep = "remember('The boat is red')\nremember('Answer briefly', 'preference')\ncreate_task('Paint the boat')"
    await chats.chat(Person('The boat has a mast.', answers=['n']), [code(f"{keep}\nfinal_answer('Noted.')")])
    elsewhere = place.folder.parent / 'elsewhere'
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    capsys.readouterr()
    person = Person('The boat?', '/tasks', '/memory scope all', 'And the boat now?', '/tasks', answers=['n'])
    await chats.chat(person, ['Which?', 'Red.'])
    shown = capsys.readouterr().out
    assert 'Answer briefly' in chats.sent(0)[-1]
    assert 'red' not in chats.sent(0)[-1]
    assert 'mast' not in chats.sent(0)[-1]
    assert 'The boat is red' in chats.sent(1)[-1]
    assert shown.index('no open tasks') < shown.index('of all folders') < shown.index('Paint the boat')
