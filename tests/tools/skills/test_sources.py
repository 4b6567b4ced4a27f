"""Where skills come from: folders, zip files, packages, the user's own folder, a shared folder."""

import os
import stat
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from habilis.core.errors import SkillError
from habilis.tools.skills.sources import find_skills, load_skills, user_folder
from tests.place import Place

CORPUS = Path(__file__).parent / 'corpus'


def make(folder: Path, *, description: str = 'Does it.') -> Path:
    folder.mkdir(parents=True)
    (folder / 'SKILL.md').write_text(f'---\nname: {folder.name}\ndescription: {description}\n---\n', encoding='utf-8')
    return folder


def packed(path: Path, entries: Mapping[str, bytes | zipfile.ZipInfo]) -> Path:
    with zipfile.ZipFile(path, 'w') as archive:
        for name, data in entries.items():
            archive.writestr(*((data, b'/etc/passwd') if isinstance(data, zipfile.ZipInfo) else (name, data)))
    return path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def names(*sources: str | os.PathLike[str]) -> list[str]:
    return [skill.name for skill in load_skills(sources)]


def test_a_folder_is_one_skill_or_has_several(place: Place) -> None:
    one = make(place.folder / 'skills' / 'one')
    make(place.folder / 'skills' / 'two')
    (place.folder / 'skills' / 'neither').mkdir()
    (one / '.git').mkdir()
    (one / '.git' / 'config').write_text('x')
    [skill] = load_skills([one])
    assert (skill.name, [*skill.files]) == ('one', ['SKILL.md'])
    assert names(one / 'SKILL.md') == ['one']
    assert names(place.folder / 'skills') == ['one', 'two']
    assert names('skills/one', place.folder / 'skills' / 'two') == ['one', 'two']


def test_a_zip_file_has_one_or_several_at_any_depth(place: Place) -> None:
    page = b'---\nname: one\ndescription: y\n---\n'
    other = page.replace(b'one', b'two')
    alone = packed(place.folder / 'one.zip', {'SKILL.md': page, 'scripts/a.py': b'1', '__MACOSX/SKILL.md': b'x'})
    [skill] = load_skills([alone])
    assert (skill.name, sorted(skill.files), skill.problems) == ('one', ['SKILL.md', 'scripts/a.py'], ())
    several = {'main/skills/one/SKILL.md': page, 'main/skills/two/SKILL.md': other, 'main/README.md': b''}
    assert names(packed(place.folder / 'all.zip', several)) == ['one', 'two']


def link() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo('link')
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    ('entries', 'reason'),
    [
        ({'../evil': b''}, 'not the path of a file inside'),
        ({'/evil': b''}, 'not the path of a file inside'),
        ({'a/../../evil': b''}, 'not the path of a file inside'),
        ({'link': link()}, 'not a plain file'),
        ({'large': bytes(20_000_001)}, 'too large'),
        ({f'{number}': b'' for number in range(5000)}, 'more than 5000 entries'),
    ],
)
def test_a_zip_file_that_escapes_or_is_too_large_is_refused(
    place: Place, entries: dict[str, bytes | zipfile.ZipInfo], reason: str
) -> None:
    path = packed(place.folder / 'x.zip', {'SKILL.md': b'---\nname: x\ndescription: y\n---\n', **entries})
    with pytest.raises(SkillError, match=f'is refused: .*{reason}'):
        load_skills([path])


def test_what_is_no_skill_is_refused(place: Place) -> None:
    (place.folder / 'empty').mkdir()
    (place.folder / 'text.zip').write_text('no zip')
    for source, reason in (
        ('empty', 'no SKILL.md in it'),
        ('text.zip', 'not a readable zip file'),
        ('missing', 'no such skill'),
    ):
        with pytest.raises(SkillError, match=reason):
            load_skills([source])
    packed(place.folder / 'none.zip', {'README.md': b''})
    with pytest.raises(SkillError, match=r'it has no SKILL\.md'):
        load_skills(['none.zip'])


def test_links_in_a_skill_are_refused(place: Place) -> None:
    secret = place.folder / 'secret'
    secret.write_text('key')
    for number, target in enumerate((secret, place.folder)):
        skill = make(place.folder / f'skill{number}')
        (skill / 'link').symlink_to(target)
        with pytest.raises(SkillError, match="'link' is a link or a device"):
            load_skills([skill])
    page = place.folder / 'linked'
    page.mkdir()
    (page / 'SKILL.md').symlink_to(secret)
    with pytest.raises(SkillError, match=r"'SKILL\.md' is a link or a device"):
        load_skills([page])


def test_a_pipe_does_not_block(place: Place) -> None:
    skill = make(place.folder / 'skill')
    os.mkfifo(skill / 'pipe')
    with pytest.raises(SkillError, match="'pipe' is a link or a device"):
        load_skills([skill])


def test_two_of_one_name_are_refused(place: Place) -> None:
    with pytest.raises(SkillError, match='two skills have the name one'):
        load_skills([make(place.folder / 'a' / 'one'), make(place.folder / 'b' / 'one')])


def test_skills_of_a_shared_folder_and_of_the_user_are_found_and_the_nearest_counts(place: Place) -> None:
    make(place.folder / '.skills' / 'shared', description='nearest')
    make(place.folder / '.claude' / 'skills' / 'known')
    make(user_folder() / 'shared', description='farther')
    make(user_folder() / 'own')
    (place.folder / '.skills' / 'broken').mkdir()
    (place.folder / '.skills' / 'broken' / 'SKILL.md').write_text('no front matter')
    found = find_skills(place.folder)
    assert [(skill.name, skill.description) for skill in found.skills] == [
        ('shared', 'nearest'),
        ('known', 'Does it.'),
        ('own', 'Does it.'),
    ]
    [reason] = found.refused
    assert '.skills/broken is refused: SKILL.md must begin with front matter' in reason
    assert [skill.name for skill in find_skills().skills] == ['own', 'shared']
    assert names('own') == ['own']


def test_a_shared_folder_cannot_bring_in_what_is_outside_of_it(place: Place, tmp_path: Path) -> None:
    outside = make(tmp_path / 'outside' / 'secret')
    (place.folder / '.skills').mkdir()
    (place.folder / '.skills' / 'secret').symlink_to(outside)
    (place.folder / '.claude').mkdir()
    (place.folder / '.claude' / 'skills').symlink_to(outside.parent)
    found = find_skills(place.folder)
    assert not found.skills
    assert [reason.endswith('a link out of the folder that is shared') for reason in found.refused] == [True, True]


def test_an_installed_package_has_skills_by_the_name_of_its_entry_point(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(place.folder / 'shop' / 'skills' / 'refunds')
    (place.folder / 'shop' / '__init__.py').write_text('')
    (place.folder / 'shop' / 'skills' / '__init__.py').write_text('raise RuntimeError("is not run")')
    about = place.folder / 'shop-1.0.dist-info'
    about.mkdir()
    (about / 'METADATA').write_text('Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n')
    (about / 'entry_points.txt').write_text('[habilis.skills]\nshop-skills = shop.skills\n')
    monkeypatch.setattr(sys, 'path', [str(place.folder), *sys.path])
    assert names('shop-skills') == ['refunds']
    assert 'shop.skills' not in sys.modules
