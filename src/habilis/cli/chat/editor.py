"""The user's editor, for texts that are too long to type in the prompt."""

import os
import shlex
import subprocess
import tempfile

from habilis.core.errors import HabilisError


class EditorError(HabilisError):
    """The user's editor could not be used, or there is nothing to edit."""


def edit_text(text: str) -> str:
    """Let the user change a text in their editor, which has the terminal. Blocks. Raises `EditorError`."""
    command = shlex.split(os.environ.get('VISUAL') or os.environ.get('EDITOR') or 'vi')
    with tempfile.NamedTemporaryFile('w+', suffix='.md', encoding='utf-8') as file:
        file.write(text)
        file.flush()
        try:
            done = subprocess.run([*command, file.name], check=False)
        except OSError as error:
            msg = f'cannot start {command[0]}: {error.strerror}; EDITOR names your editor'
            raise EditorError(msg) from error
        if done.returncode:
            msg = f'{command[0]} ended with the exit code {done.returncode}; nothing is changed'
            raise EditorError(msg)
        with open(file.name, encoding='utf-8', errors='replace') as edited:  # editors replace the file
            return edited.read()
