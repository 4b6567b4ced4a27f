"""`@path` in a message: what is a file, and what is not."""

from pathlib import Path

import pytest

from habilis.assistant.attachments import MAX_LISTED, AttachmentError, attach
from habilis.models.files import Image
from tests.cli.png_file import png

PASTED = """What does this do?

@app.route('/users')
@cache
async def users(): ...

    @data.csv
    def inside(self): ...
"""


def test_handles_addresses_and_decorators_are_not_files(tmp_path: Path) -> None:
    for name in ('cache', 'data.csv'):
        (tmp_path / name).touch()
    for text in ('ann@example.csv', 'ask @ann and @john.doe of @example.org', '@types/node', PASTED):
        assert attach(text, folder=str(tmp_path), sees_images=False).files == []


def test_a_path_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    (tmp_path / 'data').mkdir()
    for text in ('@sales.csv', 'see @"my notes"', '@data/sales', '@./x', 'and @~/no.such/place.', '@/no/such'):
        with pytest.raises(AttachmentError, match='there is no file'):
            attach(text, folder=str(tmp_path), sees_images=False)


def test_an_image_goes_to_a_model_that_sees_and_is_a_file_for_others(tmp_path: Path) -> None:
    (tmp_path / 'plot.png').write_bytes(png())
    for sees_images in (True, False):
        found = attach('@plot.png', folder=str(tmp_path), sees_images=sees_images)
        assert isinstance(found.files[0], Image) == sees_images
        assert found.unseen == ([] if sees_images else ['plot.png'])


def test_a_folder_is_listed_up_to_a_bound(tmp_path: Path) -> None:
    for number in range(MAX_LISTED + 5):
        (tmp_path / f'{number:03}.txt').touch()
    (tmp_path / '.hidden').touch()
    (tmp_path / '000').mkdir()
    lines = attach(f'@{tmp_path}', sees_images=False).text.strip().split('\n')
    assert lines[1:3] == ['000/', '000.txt (0 bytes)']
    assert lines[-2:] == ['and 6 more', '</folder>']
    assert len(lines) == MAX_LISTED + 3
