"""Small JSON files of the data folder: what the user has agreed to, kept outside of all projects."""

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping

from habilis.core.folders import data_folder
from habilis.core.narrowing import is_mapping


def read_data(name: str) -> dict[str, object]:
    """The content of a file; empty if there is none, or if it is damaged."""
    try:
        found: object = json.loads((data_folder() / name).read_text(encoding='utf-8'))
    except (OSError, ValueError):
        return {}
    return {str(key): value for key, value in found.items()} if is_mapping(found) else {}


def write_data(name: str, content: Mapping[str, object]) -> None:
    """Replace the content of a file. A data folder that cannot be written remembers nothing."""
    with contextlib.suppress(OSError):
        path = data_folder() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile('w', dir=path.parent, encoding='utf-8', delete=False) as file:
            json.dump(content, file, indent=1)
        os.replace(file.name, path)
