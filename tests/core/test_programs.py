"""Where an object is in the user's program."""

import subprocess
import sys
from pathlib import Path

import pytest

from habilis.core.programs import importable_name, program_of

PROGRAM = """
from habilis.core.programs import importable_name, program_of

class Thing:
    pass

thing = Thing()
print(repr(program_of(thing)), repr(program_of(Thing())), repr(importable_name('__main__')))
"""


class Thing:
    """Something that a program may have."""


HERE = Thing()


def test_a_global_variable_of_a_module_is_found_and_a_local_one_is_not() -> None:
    assert program_of(HERE) == f'{__name__}:HERE'
    assert program_of(Thing()) == ''
    assert importable_name('json.decoder') == 'json.decoder'


@pytest.mark.parametrize(
    ('command', 'folder', 'names'),
    [
        (['firm.py'], '.', ("'firm:thing'", "''", "'firm'")),
        (['-m', 'tools.firm'], '.', ("'tools.firm:thing'", "''", "'tools.firm'")),
        (['tools/firm.py'], '.', ("'tools.firm:thing'", "''", "'tools.firm'")),
        (['../firm.py'], 'tools', ("''", "''", "''")),
        (['my-firm.py'], '.', ("''", "''", "''")),
        (['-c', PROGRAM], '.', ("''", "''", "''")),
    ],
)
def test_a_script_is_named_by_its_file_where_it_can_be_imported_from(
    tmp_path: Path, command: list[str], folder: str, names: tuple[str, ...]
) -> None:
    (tmp_path / 'tools').mkdir()
    for name in ('firm.py', 'my-firm.py', 'tools/firm.py'):
        (tmp_path / name).write_text(PROGRAM)
    done = subprocess.run([sys.executable, *command], cwd=tmp_path / folder, capture_output=True, text=True, check=True)
    assert done.stdout.split() == list(names)
