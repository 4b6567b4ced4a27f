"""Advice at the end of a traceback, for whoever has created the sandbox. A model cannot follow it, and is told less."""

NO_FILES = '(a sandbox sees only its workspace and mounts: pass workspace=…, or --workspace at the command line)'
NO_NETWORK = '(this sandbox has no network: pass network=True, or --network at the command line)'

FOR_MODELS = {
    NO_FILES: '(no files are shared with you: use the data in your variables and in the task)',
    NO_NETWORK: '(there is no network here: use the data and the functions that you have)',
}
"""What a model is told instead."""


def for_model(traceback: str) -> str:
    """The traceback with the advice that a model can use."""
    return '\n'.join(FOR_MODELS.get(line.strip(), line) for line in traceback.split('\n'))


def hint_in(traceback: str) -> str:
    """The advice in a traceback; empty if there is none."""
    return next((line.strip() for line in traceback.split('\n') if line.strip() in FOR_MODELS), '')
