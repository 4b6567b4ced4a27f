"""Hooks in `.habilis/hooks` of a shared folder: trusted once, called around tools and turns."""

from pathlib import Path

import pytest

from habilis.assistant import project_hooks
from habilis.assistant.project_hooks import FOLDER, NAMES
from tests.cli.chat import code
from tests.cli.chat.people import Chats, Person
from tests.place import Place

Capture = pytest.CaptureFixture[str]
HOOKS = """
def note(line):
    with open('hooks.log', 'a') as file:
        print(line, file=file)

def before_tool(call):
    if call.tool == 'remember' and 'secret' in call.arguments['text']:
        return 'secrets stay secret'

def after_tool(call, result):
    note(call.tool)

def before_turn(message):
    return f'{len(message)} characters'

def after_turn(answer):
    note(f'answered {answer}')
"""
TRY = code("""
try:
    remember('a secret')
except Exception as error:
    print(error)
remember('a boat')
""")


@pytest.fixture
def hooks(place: Place) -> Path:
    """The folder of the hooks."""
    folder = place.folder / FOLDER
    folder.mkdir(parents=True)
    return folder


async def chat(chats: Chats, place: Place, person: Person, *replies: str) -> None:
    await chats.chat(person, replies, workspace=str(place.folder), mode='all')


async def test_hooks_that_are_trusted_decide_about_tools_and_add_to_messages(
    chats: Chats, place: Place, hooks: Path, capsys: Capture
) -> None:
    (hooks / 'guard.py').write_text(HOOKS)
    person = Person('Keep it.', answers=['show', 'y'])
    await chat(chats, place, person, TRY, 'Done.')
    assert 'sha256 ' in person.questions[0]
    assert 'outside of the sandbox' in person.questions[0]
    shown = capsys.readouterr().out
    assert 'secrets stay secret' in shown[: shown.index('> Keep it.')]  # the content, which was asked for
    assert all(f'{name} of guard.py' in shown for name in NAMES)
    assert chats.sent(0)[-1].startswith('Keep it.\n\n<hook>\n8 characters\n</hook>')
    assert 'secrets stay secret' in chats.sent(1)[-1]
    assert (place.folder / 'hooks.log').read_text() == 'remember\nanswered Done.\n'


async def test_hooks_are_asked_about_again_when_they_change_and_are_not_used_without_trust(
    chats: Chats, place: Place, hooks: Path, capsys: Capture
) -> None:
    (hooks / 'touch.py').write_text("from pathlib import Path\nPath('ran').touch()")
    await chat(chats, place, refused := Person(answers=['']))
    assert 'are not trusted, and not used' in capsys.readouterr().out
    assert not (place.folder / 'ran').exists()
    await chat(chats, place, trusting := Person(answers=['y']))
    assert (place.folder / 'ran').exists()
    await chat(chats, place, again := Person())
    (hooks / 'touch.py').write_text("from pathlib import Path\nPath('changed').touch()")
    await chat(chats, place, changed := Person(answers=['n']))
    assert [len(one.questions) for one in (refused, trusting, again, changed)] == [1, 1, 0, 1]
    assert not (place.folder / 'changed').exists()


async def test_links_to_the_outside_and_folders_that_are_not_shared_have_no_hooks(
    chats: Chats, place: Place, hooks: Path, tmp_path: Path
) -> None:
    outside = tmp_path / 'outside.py'
    outside.write_text("from pathlib import Path\nPath('ran').touch()")
    (hooks / 'link.py').symlink_to(outside)
    await chat(chats, place, person := Person())
    (hooks / 'own.py').write_text("from pathlib import Path\nPath('ran').touch()")
    await chats.chat(unshared := Person(), [])
    assert person.questions == unshared.questions == []


async def test_a_hook_that_fails_exits_or_hangs_costs_a_line_and_not_the_chat(
    chats: Chats, place: Place, hooks: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_hooks, 'MAX_SECONDS', 0.2)
    (hooks / 'a_broken.py').write_text('def before_turn(')
    (hooks / 'b_failing.py').write_text('def before_turn(message): 1 / 0\ndef after_turn(answer): raise SystemExit(3)')
    (hooks / 'c_hanging.py').write_text('import time\ndef before_tool(call): time.sleep(3600)')
    tried = code("try:\n    remember('a boat')\nexcept Exception as error:\n    print(error)")
    await chat(chats, place, Person('Keep it.', answers=['y']), tried, 'Done.')
    shown = capsys.readouterr().out
    assert 'the hooks of a_broken.py are not used: ' in shown
    assert 'the hook before_turn of b_failing.py failed: ZeroDivisionError: division by zero' in shown
    assert 'the hook after_turn of b_failing.py failed: ' in shown
    assert (
        'the hook before_tool of c_hanging.py failed: TimeoutError: no answer within 0.2 s; it is not called again'
        in shown
    )
    assert 'the hook before_tool of c_hanging.py failed' in chats.sent(1)[-1]  # so it was not made
    assert 'Done.' in shown
