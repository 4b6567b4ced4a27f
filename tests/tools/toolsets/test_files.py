"""The toolset `files`: text files of a folder, and nothing outside it."""

import contextlib
import threading
from pathlib import Path

import pytest

from habilis.core.errors import ToolDenied, WorkspaceError
from habilis.sandbox.files.workspace import Workspace
from habilis.tools import ApprovalRequest, Deny, Files, GateCall, Toolbox
from habilis.tools.toolsets import file_text
from habilis.tools.toolsets.file_text import MAX_BYTES
from tests.tools.patches import apply


@pytest.fixture
def box(tmp_path: Path) -> Toolbox:
    return Toolbox([Files(tmp_path)])


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
        await Toolbox([Files(inside)]).call(call, path, *arguments)
    assert [(outside / 'x').read_text(), (tmp_path / 'x').read_text()] == ['secret', 'secret']


async def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match='does not exist'):
        Files(tmp_path / 'nowhere')


async def test_a_workspace_can_be_shared_with_a_sandbox(tmp_path: Path) -> None:
    box = Toolbox([Files(Workspace(tmp_path))])
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
        ('new', 1, '`old` and `new` are the same'),
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
    await box.call('update_file', 'x', '2', '2\nand more')
    assert (tmp_path / 'x').read_bytes() == b'1\r\n2\r\nand more\r\nthree\r\n'


async def test_d14_a_denying_gate_stops_write_file(tmp_path: Path) -> None:
    def gate(call: GateCall) -> Deny | None:
        return Deny('the folder is frozen') if call.tool == 'write_file' else None

    box = Toolbox([Files(tmp_path)], gates=[gate])
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
    toolset = Files(tmp_path, needs_approval=True)
    with pytest.raises(ToolDenied, match='the user said no'):
        await Toolbox([toolset], approve=refusing).call(call, 'x.txt', *arguments)
    assert (file.read_bytes() if file.exists() else None) == before
    await Toolbox([toolset], approve=agreeing).call(call, 'x.txt', *arguments)
    assert file.read_bytes() == after
    assert refusing.asked == agreeing.asked
    assert apply(agreeing.asked[0].diff, (before or b'').decode()) == after.decode()


async def test_binary_data_is_written_and_its_size_is_what_a_person_is_asked_about(tmp_path: Path) -> None:
    person, data = Person(True), b'\x89PNG\0\xff'
    box = Toolbox([Files(tmp_path, needs_approval=True)], approve=person)
    assert await box.call('write_file', 'plots/a.png', data) == 'made plots/a.png (6 bytes)'
    assert await box.call('write_file', 'plots/a.png', data[:4]) == 'replaced plots/a.png (4 bytes)'
    assert (tmp_path / 'plots/a.png').read_bytes() == data[:4]
    assert [request.diff for request in person.asked] == [
        'plots/a.png: 6 bytes, new',
        'plots/a.png: 4 bytes, instead of 6',
    ]


async def test_no_approval_is_asked_for_a_change_that_cannot_be_made(tmp_path: Path) -> None:
    person = Person(True)
    box = Toolbox([Files(tmp_path, needs_approval=True)], approve=person)
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
    box = Toolbox([Files(Workspace(tmp_path, read_only=True), needs_approval=True)], approve=person)
    for call in (('write_file', 'x', 'b'), ('update_file', 'x', 'a', 'b')):
        with pytest.raises(WorkspaceError, match='read-only'):
            await box.call(*call)
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

    box = Toolbox([Files(tmp_path, needs_approval=True)], approve=approve)
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

    box = Toolbox([Files(tmp_path, needs_approval=True)], approve=approve)
    await box.call('update_file', 'x.txt', '0\n1\n', 'first\n')
    assert file.read_text() == 'first\n' + ''.join(lines[2:-1]) + 'last\n'


async def test_reading_needs_no_approval(tmp_path: Path) -> None:
    (tmp_path / 'x').write_text('y')
    assert await Toolbox([Files(tmp_path, needs_approval=True)]).call('read_file', 'x') == 'y'


# Lines ----------------------------------------------------------------------------------------------------------------


async def test_d4_a_slice_has_the_right_lines_and_numbers(box: Toolbox, tmp_path: Path) -> None:
    (tmp_path / 'x').write_text(''.join(f'line {number}\n' for number in range(1, 101)) + 'end')
    assert await box.call('read_file', 'x', 3, 2) == 'line 3\nline 4\n'
    assert await box.call('read_file', 'x', start_line=100, numbers=True) == '   100\tline 100\n   101\tend'
    assert await box.call('read_file', 'x', numbers=True, max_lines=1) == '     1\tline 1\n'
    with pytest.raises(WorkspaceError, match='has 101 lines, and none at 102'):
        await box.call('read_file', 'x', 102)
    with pytest.raises(WorkspaceError, match='must be 1 or more'):
        await box.call('read_file', 'x', 0)


async def test_lines_of_a_file_that_is_too_large_to_read_whole(box: Toolbox, tmp_path: Path) -> None:
    with (tmp_path / 'x').open('wb') as file:
        file.write(b'first\nsecond\n')
        file.truncate(MAX_BYTES + 100)
    with pytest.raises(WorkspaceError, match='read some of its lines, with start_line and max_lines'):
        await box.call('read_file', 'x')
    assert await box.call('read_file', 'x', 2, 1) == 'second\n'
    with pytest.raises(WorkspaceError, match='these lines have more than'):
        await box.call('read_file', 'x', 2)


async def test_a_line_is_found_after_one_that_is_too_long_and_a_search_for_it_ends(
    box: Toolbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_text, 'MAX_BYTES', 10)
    (tmp_path / 'x').write_text(f'{"long" * 10}\nsecond\nthird')
    assert await box.call('read_file', 'x', 2, 1) == 'second\n'
    assert await box.call('read_file', 'x', 3, numbers=True) == '     3\tthird'
    with pytest.raises(WorkspaceError, match='has 3 lines, and none at 4'):
        await box.call('read_file', 'x', 4)
    monkeypatch.setattr(file_text, 'MAX_SCANNED', 30)
    with pytest.raises(WorkspaceError, match='line 2 is not in the first 30 bytes'):
        await box.call('read_file', 'x', 2)


async def test_a_binary_line_is_refused_and_an_empty_file_is_not(box: Toolbox, tmp_path: Path) -> None:
    (tmp_path / 'x').write_bytes(b'text\nPNG\0\n')
    assert await box.call('read_file', 'x', max_lines=1) == 'text\n'
    with pytest.raises(WorkspaceError, match='binary data'):
        await box.call('read_file', 'x', 2)
    (tmp_path / 'empty').write_bytes(b'')
    assert await box.call('read_file', 'empty', numbers=True) == ''


# Errors ---------------------------------------------------------------------------------------------------------------


async def test_errors_of_files_say_what_to_do(box: Toolbox, tmp_path: Path) -> None:
    (tmp_path / 'src').mkdir()
    (tmp_path / 'src' / 'main.py').write_text('a\n  b\na\n')
    for path, complaint in {
        'src/mian.py': r"no such file or folder; did you mean 'src/main.py'\?",
        'scr/main.py': r"no such file or folder; did you mean 'src/main.py'\?",
        'zebra': 'no such file or folder$',
        'src': 'is a folder, not a file',
        'src/main.py/x': "'main.py' is a file, not a folder",
        '/etc/passwd': 'is not a path inside the workspace',
    }.items():
        with pytest.raises(WorkspaceError, match=complaint):
            await box.call('read_file', path)
    with pytest.raises(WorkspaceError, match='no such file or folder'):
        await box.call('write_file', 'made/here/x', 'y', create_dirs=False)
    assert not (tmp_path / 'made').exists()
    with pytest.raises(WorkspaceError, match='found in line 1, 3'):
        await box.call('update_file', 'src/main.py', 'a', 'c')
    with pytest.raises(WorkspaceError, match='line 1 differs in white space'):
        await box.call('update_file', 'src/main.py', 'a\nb\n', 'c')


async def test_a_text_that_is_not_there_is_answered_with_the_line_most_like_it(box: Toolbox, tmp_path: Path) -> None:
    (tmp_path / 'main.py').write_text('import os\n\ndef total(rows):\n    return sum(row.price for row in rows)\n')
    with pytest.raises(WorkspaceError, match=r"most similar is line 4: '    return sum\(row.price for row in rows\)'"):
        await box.call('update_file', 'main.py', 'def total(rows):\n    return sum(row.prices for row in rows)', 'x')
    with pytest.raises(WorkspaceError, match=r"line 1 differs in white space: 'import os'"):
        await box.call('update_file', 'main.py', 'import  os', 'x')
    with pytest.raises(WorkspaceError, match=r'or set expected_matches$'):
        await box.call('update_file', 'main.py', 'nothing of the kind', 'x')
    (tmp_path / 'long.txt').write_text('x' * 100_000 + '\n' + 'y\n' * 100_000 + 'needle\n')
    with pytest.raises(WorkspaceError, match=r'most similar is line 1: .{100,120}$'):
        await box.call('update_file', 'long.txt', 'z' + 'x' * 100_000, 'z')


# Races ----------------------------------------------------------------------------------------------------------------


def test_a_folder_that_becomes_a_link_leads_nowhere(tmp_path: Path) -> None:
    inside, outside = tmp_path / 'inside', tmp_path / 'outside'
    for folder in (inside / 'a', outside):
        folder.mkdir(parents=True)
        (folder / 'x').write_text('secret' if folder == outside else 'mine')
    (inside / 'link').symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for source, target in (('a', 'b'), ('link', 'a'), ('a', 'link'), ('b', 'a')):
                (inside / source).rename(inside / target)

    swapper = threading.Thread(target=swap)
    swapper.start()
    files, seen = Files(inside), set[str]()
    try:
        for _ in range(300):
            for attempt in (
                lambda: files.read_file('a/x'),
                lambda: files.write_file('a/x', 'mine', create_dirs=False),
                lambda: ' '.join(files.find_files('**')),
            ):
                with contextlib.suppress(WorkspaceError):
                    seen.add(attempt())
        with contextlib.suppress(WorkspaceError):
            seen.add(files.grep('secret'))
    finally:
        stop.set()
        swapper.join()
    assert 'mine' in seen, 'some attempts succeeded'
    assert not [text for text in seen if 'secret' in text or 'link/x' in text]
    assert (outside / 'x').read_text() == 'secret'
    assert [file.name for file in outside.iterdir()] == ['x']
