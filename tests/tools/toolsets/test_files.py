"""The toolset `files`: text files of a folder, and nothing outside it."""

from pathlib import Path

import pytest

from habilis.core.errors import ToolDenied, WorkspaceError
from habilis.sandbox.workspace import Workspace
from habilis.tools import ApprovalRequest, Deny, GateCall, Toolbox, files_toolset
from tests.tools.patches import apply


@pytest.fixture
def box(tmp_path: Path) -> Toolbox:
    return Toolbox([files_toolset(tmp_path)])


class Person:
    """Says the same to every question, and keeps them."""

    def __init__(self, answer: bool) -> None:
        self.answer = answer
        self.asked: list[ApprovalRequest] = []

    def __call__(self, request: ApprovalRequest) -> bool:
        self.asked.append(request)
        return self.answer


async def test_files_are_made_read_and_changed(box: Toolbox, tmp_path: Path) -> None:
    assert await box.call('write_file', 'notes/a.txt', 'one\ntwo\n') == 'made notes/a.txt (8 bytes)'
    assert await box.call('read_file', 'notes/a.txt') == 'one\ntwo\n'
    assert await box.call('update_file', 'notes/a.txt', 'two', 'zwei') == 'changed notes/a.txt (9 bytes)'
    assert (tmp_path / 'notes/a.txt').read_bytes() == b'one\nzwei\n'
    assert await box.call('write_file', '/workspace/notes/a.txt', '') == 'replaced /workspace/notes/a.txt (0 bytes)'


@pytest.mark.parametrize('name', ['a..b.txt', 'it\'s "so".txt', 'ü.txt', 'a b.txt', '.hidden', '...'])
async def test_odd_names_are_fine(box: Toolbox, tmp_path: Path, name: str) -> None:
    await box.call('write_file', name, 'x')
    assert (tmp_path / name).read_text() == 'x'


@pytest.mark.parametrize(
    'path', ['../x', 'a/../../x', '/etc/passwd', '/', '', '.', '..', 'a\0b', 'link/x', 'file_link']
)
@pytest.mark.parametrize('call', ['read_file', 'write_file', 'update_file'])
async def test_nothing_outside_the_folder_can_be_reached(tmp_path: Path, path: str, call: str) -> None:
    inside, outside = tmp_path / 'inside', tmp_path / 'outside'
    for folder in (inside, outside):
        folder.mkdir()
    for place in (outside / 'x', tmp_path / 'x'):
        place.write_text('secret')
    (inside / 'link').symlink_to(outside)
    (inside / 'file_link').symlink_to(outside / 'x')
    arguments = {'read_file': [], 'write_file': ['gone'], 'update_file': ['secret', 'gone']}[call]
    with pytest.raises(WorkspaceError):
        await Toolbox([files_toolset(inside)]).call(call, path, *arguments)
    assert [(outside / 'x').read_text(), (tmp_path / 'x').read_text()] == ['secret', 'secret']


async def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match='does not exist'):
        files_toolset(tmp_path / 'nowhere')


async def test_a_workspace_can_be_shared_with_a_sandbox(tmp_path: Path) -> None:
    box = Toolbox([files_toolset(Workspace(tmp_path))])
    await box.call('write_file', 'x', 'y')
    assert (tmp_path / 'x').read_text() == 'y'


@pytest.mark.parametrize('data', [b'\xff\xfe', b'PNG\0\x01', b'\x80'])
@pytest.mark.parametrize('call', ['read_file', 'write_file', 'update_file'])
async def test_binary_files_are_refused_and_left_alone(box: Toolbox, tmp_path: Path, data: bytes, call: str) -> None:
    (tmp_path / 'x.bin').write_bytes(data)
    arguments = {'read_file': [], 'write_file': ['text'], 'update_file': ['a', 'b']}[call]
    with pytest.raises(WorkspaceError, match='binary data'):
        await box.call(call, 'x.bin', *arguments)
    assert (tmp_path / 'x.bin').read_bytes() == data


@pytest.mark.parametrize('text', ['half \ud800', 'nul \0'])
async def test_text_that_no_file_can_hold_leaves_the_file_untouched(box: Toolbox, tmp_path: Path, text: str) -> None:
    (tmp_path / 'x').write_text('before')
    with pytest.raises(WorkspaceError, match='was not written'):
        await box.call('write_file', 'x', text)
    assert (tmp_path / 'x').read_text() == 'before'


@pytest.mark.parametrize(
    ('old', 'expected', 'complaint'),
    [
        ('z', 1, 'occurs 0 times, not 1; read the file again'),
        ('a', 1, 'occurs 2 times, not 1; give more of the text'),
        ('a', 3, 'occurs 2 times, not 3'),
        ('z', 0, 'occurs 0 times, not 0'),
        ('', 1, '`old` is empty'),
    ],
)
async def test_an_update_that_does_not_match_changes_nothing(
    box: Toolbox, tmp_path: Path, old: str, expected: int, complaint: str
) -> None:
    (tmp_path / 'x').write_text('a b a')
    with pytest.raises(WorkspaceError, match=complaint):
        await box.call('update_file', 'x', old, 'new', expected_matches=expected)
    assert (tmp_path / 'x').read_text() == 'a b a'


async def test_an_update_replaces_all_that_were_expected(box: Toolbox, tmp_path: Path) -> None:
    (tmp_path / 'x').write_text('a b a')
    await box.call('update_file', 'x', 'a', 'A', 2)
    assert (tmp_path / 'x').read_text() == 'A b A'


async def test_line_ends_of_windows_are_kept(box: Toolbox, tmp_path: Path) -> None:
    (tmp_path / 'x').write_bytes(b'one\r\ntwo\r\nthree\r\n')
    await box.call('update_file', 'x', 'one\ntwo\n', '1\n2\n')
    assert (tmp_path / 'x').read_bytes() == b'1\r\n2\r\nthree\r\n'
    assert await box.call('read_file', 'x') == '1\r\n2\r\nthree\r\n'


async def test_d14_a_denying_gate_stops_write_file(tmp_path: Path) -> None:
    def gate(call: GateCall) -> Deny | None:
        return Deny('the folder is frozen') if call.tool == 'write_file' else None

    box = Toolbox([files_toolset(tmp_path)], gates=[gate])
    with pytest.raises(ToolDenied, match='write_file was not called: the folder is frozen'):
        await box.call('write_file', 'x', 'y')
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ('before', 'call', 'arguments', 'after'),
    [
        (None, 'write_file', ['new text\n'], b'new text\n'),
        (None, 'write_file', ['no line end'], b'no line end'),
        (b'old\n', 'write_file', ['new'], b'new'),
        (b'one\ntwo', 'update_file', ['two', '2\n'], b'one\n2\n'),
        (b'one\r\ntwo\r\n', 'update_file', ['one\n', '1\n'], b'1\r\ntwo\r\n'),
        (b'a b a', 'update_file', ['a', 'c', 2], b'c b c'),
    ],
)
async def test_d15_the_diff_is_right_and_no_leaves_the_file_untouched(
    tmp_path: Path, before: bytes | None, call: str, arguments: list[str | int], after: bytes
) -> None:
    file = tmp_path / 'x.txt'
    if before is not None:
        file.write_bytes(before)
    refusing, agreeing = Person(False), Person(True)
    toolset = files_toolset(tmp_path, needs_approval=True)
    with pytest.raises(ToolDenied, match='the user said no'):
        await Toolbox([toolset], approve=refusing).call(call, 'x.txt', *arguments)
    assert (file.read_bytes() if file.exists() else None) == before
    await Toolbox([toolset], approve=agreeing).call(call, 'x.txt', *arguments)
    assert file.read_bytes() == after
    assert refusing.asked == agreeing.asked
    assert apply(agreeing.asked[0].diff, (before or b'').decode()) == after.decode()


async def test_nobody_is_asked_about_a_change_that_cannot_be_made(tmp_path: Path) -> None:
    person = Person(True)
    box = Toolbox([files_toolset(tmp_path, needs_approval=True)], approve=person)
    with pytest.raises(WorkspaceError):
        await box.call('update_file', 'missing.txt', 'a', 'b')
    with pytest.raises(WorkspaceError):
        await box.call('write_file', '../x', 'b')
    (tmp_path / 'x').write_text('a')
    for text in ('half \ud800', 'nul \0'):
        with pytest.raises(WorkspaceError, match='was not written'):
            await box.call('write_file', 'x', text)
        with pytest.raises(WorkspaceError, match='was not written'):
            await box.call('update_file', 'x', 'a', text)
    assert person.asked == []


@pytest.mark.parametrize('before', [None, 'old', 'mine'])
async def test_d15_a_file_that_changed_while_the_person_decided_is_not_overwritten(
    tmp_path: Path, before: str | None
) -> None:
    file = tmp_path / 'x.txt'
    if before is not None:
        file.write_text(before)

    def approve(request: ApprovalRequest) -> bool:
        if 'theirs' not in request.diff:
            file.write_text('theirs')
        return True

    box = Toolbox([files_toolset(tmp_path, needs_approval=True)], approve=approve)
    with pytest.raises(ToolDenied, match=r'write_file was not called: .* no longer what the user was shown'):
        await box.call('write_file', 'x.txt', 'mine')
    assert file.read_text() == 'theirs'
    assert await box.call('write_file', 'x.txt', 'mine') == 'replaced x.txt (4 bytes)', 'it can be called again'


async def test_d15_an_update_is_made_if_what_the_person_saw_is_still_so(tmp_path: Path) -> None:
    file = tmp_path / 'x.txt'
    lines = [f'{number}\n' for number in range(20)]
    file.write_text(''.join(lines))

    def approve(request: ApprovalRequest) -> bool:
        file.write_text(''.join(lines[:-1]) + 'last\n')
        return True

    box = Toolbox([files_toolset(tmp_path, needs_approval=True)], approve=approve)
    await box.call('update_file', 'x.txt', '0\n1\n', 'first\n')
    assert file.read_text() == 'first\n' + ''.join(lines[2:-1]) + 'last\n'


async def test_reading_needs_no_approval(tmp_path: Path) -> None:
    (tmp_path / 'x').write_text('y')
    assert await Toolbox([files_toolset(tmp_path, needs_approval=True)]).call('read_file', 'x') == 'y'
