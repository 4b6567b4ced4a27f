"""Ask whether to trust the hooks of a shared folder, and load them."""

from collections.abc import Sequence

from habilis.agent.hooks.sanitize import escape_controls
from habilis.assistant.project_hooks import FOLDER, HookFile, HookFileError, ProjectHooks, digest_of, hook_files
from habilis.assistant.shared_folders import trust_hooks, trusted_hooks
from habilis.cli.chat.front import FrontEnd
from habilis.cli.model_choice import Say
from habilis.cli.terminal_user import YES

SHOW = frozenset({'s', 'show'})


async def load_hooks(front: FrontEnd, workspace: str | None, say: Say) -> ProjectHooks:
    """The hooks of a shared folder, if the user trusts them as they are."""
    try:
        files = hook_files(workspace) if workspace is not None else ()
    except HookFileError as error:
        say(str(error))
        return ProjectHooks()
    if workspace is None or not files:
        return ProjectHooks()
    if trusted_hooks(workspace) != digest_of(files):
        if not front.is_present or not await _asked(front, files):
            say(f'the hooks in {FOLDER} are not trusted, and not used')
            return ProjectHooks()
        trust_hooks(workspace, digest_of(files))
    hooks = ProjectHooks(files, say)
    if hooks.names:
        say(f'hooks: {", ".join(hooks.names)}')
    return hooks


async def _asked(front: FrontEnd, files: Sequence[HookFile]) -> bool:
    listed = '\n'.join(f'  {escape_controls(file.name)}  sha256 {file.digest[:16]}' for file in files)
    question = (
        f'Hooks in {FOLDER} are new or have changed:\n{listed}\n'
        'They run on this machine, outside of the sandbox. Trust them? [y/N/show] '
    )
    answer = (await front.ask(question) or '').strip().lower()
    while answer in SHOW:
        for file in files:
            print(escape_controls(f'{file.name}:\n{file.source.decode(errors="replace")}'), flush=True)
        answer = (await front.ask('Trust them? [y/N/show] ') or '').strip().lower()
    return answer in YES
