"""Hooks of a project: functions in `.habilis/hooks/` of a shared folder, called on the host around tools and turns.

They can do everything that the user can, so they are loaded only from files whose content the user has trusted. What
was hashed is what runs: a file is read once.
"""

import asyncio
import functools
import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from habilis.assistant.shared_folders import files_within, is_data_folder_in
from habilis.core.errors import HabilisError
from habilis.core.integers import error_text
from habilis.core.regular_files import read_regular
from habilis.tools import (
    Allow,
    Ask,
    Change,
    ChangeResult,
    Decision,
    Deny,
    Gate,
    GateCall,
    ResultDecision,
    ResultGate,
)

FOLDER = Path('.habilis', 'hooks')
MAX_BYTES = 200_000
MAX_SECONDS = 10.0
"""Time limit of a hook. One that takes longer is not called again."""

Say = Callable[[str], None]
BEFORE_TOOL, AFTER_TOOL, BEFORE_TURN, AFTER_TURN = 'before_tool', 'after_tool', 'before_turn', 'after_turn'
NAMES = (BEFORE_TOOL, AFTER_TOOL, BEFORE_TURN, AFTER_TURN)


class HookFileError(HabilisError):
    """A file with hooks cannot be read."""


@dataclass(frozen=True, kw_only=True)
class HookFile:
    """A file with hooks, as it was read."""

    name: str
    source: bytes

    @property
    def digest(self) -> str:
        """The sha256 of its content."""
        return hashlib.sha256(self.source).hexdigest()


def hook_files(workspace: str) -> Sequence[HookFile]:
    """The files with hooks of a shared folder; none if code could write down that they are trusted.

    Raises `HookFileError`.
    """
    if is_data_folder_in(workspace):
        return ()
    try:
        return [
            HookFile(name=path.name, source=read_regular(path, limit=MAX_BYTES))
            for path in files_within(workspace, FOLDER, '*.py')
        ]
    except OSError as error:
        msg = f'cannot read the hooks: {error}'
        raise HookFileError(msg) from None


def digest_of(files: Sequence[HookFile]) -> str:
    """One digest for the names and contents of all files."""
    return hashlib.sha256('\n'.join(f'{file.name} {file.digest}' for file in files).encode()).hexdigest()


class ProjectHooks:
    """The hooks of trusted files. One that fails costs a line, which `say` gets."""

    def __init__(self, files: Sequence[HookFile] = (), say: Say = lambda text: None) -> None:
        self._say = say
        self._found: dict[str, list[_Hook]] = {name: [] for name in NAMES}
        for file in files:
            for name, function in self._load(file).items():
                self._found[name].append(_Hook(function, f'{name} of {file.name}'))
        self.names = [hook.name for hooks in self._found.values() for hook in hooks]
        self.gates: list[Gate | ResultGate] = [
            *(functools.partial(self._before_tool, hook) for hook in self._found[BEFORE_TOOL]),
            *(functools.partial(self._after_tool, hook) for hook in self._found[AFTER_TOOL]),
        ]

    def _load(self, file: HookFile) -> Mapping[str, Callable[..., object]]:
        names: dict[str, object] = {'__name__': f'habilis_hooks_{Path(file.name).stem}'}
        try:
            exec(compile(file.source, str(FOLDER / file.name), 'exec'), names)  # the user trusts this content
        except Exception as error:
            self._say(f'the hooks of {file.name} are not used: {error_text(error)}')
            return {}
        return {name: found for name, found in names.items() if name in NAMES and callable(found)}

    async def _before_tool(self, hook: '_Hook', call: GateCall) -> Decision | None:
        """What a hook says about a call. It guards something: without its answer the call is not made."""
        try:
            said = await hook(call)
        except Exception as error:
            self._failed(hook, error)
            return Deny(f'the hook {hook.name} failed')
        if isinstance(said, str):
            return Deny(said)
        return said if isinstance(said, Allow | Ask | Change | Deny) else None

    async def _after_tool(self, hook: '_Hook', call: GateCall, result: object) -> ResultDecision | None:
        try:
            said = await hook(call, result)
        except Exception as error:
            self._failed(hook, error)
            return None
        return said if isinstance(said, ChangeResult | Deny) else None

    async def before_turn(self, message: str) -> str:
        """What the hooks add to a message, each as a part of its own."""
        said = [await self._told(hook, message) for hook in self._found[BEFORE_TURN]]
        return ''.join(f'\n\n<hook>\n{text}\n</hook>' for text in said if isinstance(text, str) and text)

    async def after_turn(self, answer: str) -> None:
        """Tell the hooks the answer."""
        for hook in self._found[AFTER_TURN]:
            await self._told(hook, answer)

    async def _told(self, hook: '_Hook', text: str) -> object:
        try:
            return await hook(text)
        except Exception as error:
            self._failed(hook, error)
            return None

    def _failed(self, hook: '_Hook', error: Exception) -> None:
        self._say(f'the hook {hook.name} failed: {error_text(error)}')


class _Hook:
    """A function of a trusted file, called on a thread of its own: one that hangs keeps nobody from leaving."""

    def __init__(self, function: Callable[..., object], name: str) -> None:
        self._function = function
        self.name = name
        self._hangs = False

    async def __call__(self, *arguments: object) -> object:
        if self._hangs:
            msg = 'it is not called again, because it took too long'
            raise TimeoutError(msg)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[object] = loop.create_future()

        def settle(value: object, error: BaseException | None) -> None:
            if not done.done():
                done.set_exception(error) if error is not None else done.set_result(value)

        def work() -> None:
            value, failure = None, None
            try:
                value = self._function(*arguments)
            except BaseException as error:  # `sys.exit` too must not end the chat
                failure = error if isinstance(error, Exception) else RuntimeError(error_text(error))
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, value, failure)

        threading.Thread(target=work, name='habilis-hook', daemon=True).start()
        await asyncio.wait([done], timeout=MAX_SECONDS)
        if not done.done():
            self._hangs = True
            msg = f'no answer within {MAX_SECONDS:g} s; it is not called again'
            raise TimeoutError(msg)
        return done.result()
