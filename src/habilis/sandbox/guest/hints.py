"""Advice at the end of a traceback, for whoever has created the sandbox. A model cannot follow it, and is told less."""

import errno

NO_FILES = '(a sandbox sees only its workspace and mounts: pass workspace=…, or --workspace at the command line)'
NO_NETWORK = '(this sandbox has no network: pass network=True, or --network at the command line)'

_NO_SUCH_FILE = (errno.ENOENT, getattr(errno, 'ENOTCAPABLE', errno.ENOENT))
_REFUSED = (errno.EACCES, errno.EPERM)
_READ_ONLY = (errno.EROFS, errno.EPERM)

FOR_MODELS = {
    NO_FILES: '(no files are shared with your code: use the data and the functions that you have)',
    NO_NETWORK: '(there is no network here: use the data and the functions that you have)',
}
"""What a model is told instead."""


def advice_for(error: OSError, *, files: bool, network: bool, write_advice: str) -> str:
    """Advice for an error that is caused by the sandbox; empty for others. `write_advice`: see `SandboxOptions`."""
    if error.errno in _NO_SUCH_FILE and error.filename and not files:
        return NO_FILES
    if error.errno in _READ_ONLY and error.filename and write_advice:
        return f'({write_advice})'
    if isinstance(reason := getattr(error, 'reason', None), OSError):  # as urllib wraps it
        return advice_for(reason, files=files, network=network, write_advice=write_advice)
    if type(error).__name__ == 'gaierror' or (error.errno in _REFUSED and not error.filename):
        return '' if network else NO_NETWORK
    return ''


def for_model(traceback: str) -> str:
    """The traceback with the advice that a model can use."""
    return '\n'.join(FOR_MODELS.get(line.strip(), line) for line in traceback.split('\n'))


def hint_in(traceback: str) -> str:
    """The advice in a traceback; empty if there is none."""
    return next((line.strip() for line in traceback.split('\n') if line.strip() in FOR_MODELS), '')
