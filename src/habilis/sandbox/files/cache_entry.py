"""Makes a folder of the cache, which is there as a whole or not at all."""

import contextlib
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path


@contextlib.contextmanager
def new_entry(folder: Path) -> Generator[Path]:
    """A scratch folder that becomes `folder` at the end; removed after an error, or if another process was first."""
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix='.making-'))
    try:
        yield scratch
        try:
            scratch.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was first; its folder is as good
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
