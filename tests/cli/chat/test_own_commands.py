"""Slash commands of the user, in a folder that may come from a stranger."""

from pathlib import Path

import pytest

from habilis.cli.chat.own_commands import FOLDER, OwnCommandError, message_of, own_commands, summary_of


def test_links_to_the_outside_are_no_commands_and_one_that_cannot_be_read_does_no_harm(tmp_path: Path) -> None:
    folder = tmp_path / 'project' / FOLDER
    folder.mkdir(parents=True)
    (tmp_path / 'secret').write_text('a key')
    (folder / 'secret.md').symlink_to(tmp_path / 'secret')
    (folder / 'greet.md').write_text('# Greet\nSay hello to $ARGUMENTS.')
    (folder / 'broken.md').write_bytes(b'\xff')
    found = own_commands(str(tmp_path / 'project'))
    assert {name: summary_of(file) for name, file in found.items()} == {'/broken': '', '/greet': 'Greet'}
    assert message_of(found['/greet'], 'Ann') == '# Greet\nSay hello to Ann.'
    with pytest.raises(OwnCommandError, match='cannot read'):
        message_of(found['/broken'], '')
