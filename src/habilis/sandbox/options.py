"""The settings of a sandbox, validated and prepared."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Literal, TypedDict, cast

from habilis.core.codec import Json
from habilis.core.errors import SandboxError
from habilis.core.limits import Limits
from habilis.sandbox.arguments import check_settings, wrong
from habilis.sandbox.code_rules import CodeRules
from habilis.sandbox.contract import WASM_PYTHON, Mount, PythonTarget
from habilis.sandbox.files.workspace import WORKSPACE, Workspace, usable_folder
from habilis.sandbox.host.cell_host import AnswerInput
from habilis.sandbox.host.functions import AnyFunction, HostFunction, host_functions
from habilis.sandbox.host.results import pack_variables
from habilis.sandbox.network import Network, make_network

PathLike = str | os.PathLike[str]
SiblingFiles = Literal['shared', 'read_only', 'own', 'writable']
"""The workspace of a sandbox that is made beside another: the same, the same without writing, a temporary one, or the
same with the right to write that code of the other one lacks."""

PACKAGES = '/packages'
logger = logging.getLogger('habilis.sandbox')


class BackendSettings(TypedDict, total=False):
    """Those keyword arguments of `Sandbox.create` that configure the backend; each backend takes some of them."""

    allow_weak: bool
    image: str
    url: str
    key: str


class SandboxSettings(BackendSettings, total=False):
    """The keyword arguments of `Sandbox.create`, documented there."""

    limits: Limits | None
    tools: Iterable[AnyFunction | HostFunction] | None
    variables: Mapping[str, object] | None
    workspace: PathLike | bool | None
    read_only: bool | str
    protect: bool
    mounts: Mapping[str, PathLike] | Iterable[Mount] | None
    env: Mapping[str, str] | None
    packages: Iterable[PathLike] | None
    network: bool | Iterable[str] | None
    code_rules: CodeRules | None
    input: AnswerInput | Iterable[str] | None
    checkpoints: bool


@dataclass(frozen=True, kw_only=True)
class Packages:
    """The packages of a sandbox."""

    names: tuple[str, ...] = ()
    """Requirements, wheels and folders, as they were given."""

    pins: tuple[str, ...] = ()
    """Those that a snapshot can name: requirements with their versions."""

    folder: Path | None = None
    python: Callable[[], PythonTarget] = lambda: WASM_PYTHON
    """Returns the Python that imports them. May block: some backends have to ask for it."""

    async def add(self, more: Iterable[str], *, replaces: bool = True) -> 'Packages':
        """These and more, downloaded if needed; see `packages.merge`."""
        wanted = list(more)
        if not wanted:
            return self
        from habilis.sandbox.packages import (
            installation as packages,  # takes 20 ms to import, and most sandboxes have no packages
        )

        merged = packages.merge(self.names, wanted, replaces=replaces)
        if merged == list(self.names):
            return self
        folder = await asyncio.to_thread(lambda: packages.package_folder(merged, self.python()))
        return replace(self, names=tuple(merged), pins=packages.pins(merged, folder), folder=folder)


@dataclass(frozen=True, kw_only=True)
class SandboxOptions:
    """The settings of one sandbox."""

    limits: Limits
    functions: dict[str, HostFunction]
    variables: dict[str, Json] = field(default_factory=dict[str, Json])
    workspace: Workspace | None = None
    mounts: tuple[Mount, ...] = ()
    folders: tuple[Workspace, ...] = ()
    """The writable mounts, accessed from the host."""

    paths: tuple[str, ...] = ()
    packages: Packages = Packages()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    write_advice: str = ''
    """What code is told that tries to change files; empty if it may. The host may change them either way."""

    network: Network | None = None
    code_rules: CodeRules | None = None
    answer_input: AnswerInput | None = None
    checkpoints: bool = True

    def setup(self, *, with_variables: bool = True) -> dict[str, Json]:
        """The setup for the kernel, sent with its first request. A checkpoint has the variables already."""
        setup: dict[str, Json] = {}
        if self.functions:
            setup['tools'] = [function.describe() for function in self.functions.values()]
        if self.network is not None:
            setup['network'] = True
        if self.env:
            setup['env'] = dict(self.env)
        if self.paths:
            setup['paths'] = list(self.paths)
        if self.workspace is not None:
            setup['cwd'] = WORKSPACE
        if self.write_advice:
            setup['write_advice'] = self.write_advice
        if self.variables and with_variables:
            setup['variables'] = cast('Json', self.variables)
        return setup

    def with_packages(self, packages: Packages) -> 'SandboxOptions':
        """The same with other packages, at least one."""
        assert packages.folder is not None
        mounts = [mount for mount in self.mounts if mount.target != PACKAGES]
        paths = [path for path in self.paths if path != PACKAGES]
        mount = Mount(source=packages.folder, target=PACKAGES)
        return replace(self, packages=packages, mounts=(*mounts, mount), paths=(PACKAGES, *paths))

    def shared(self) -> 'SandboxOptions':
        """The options of a fork. A temporary workspace is removed when its last sandbox is closed."""
        return replace(
            self,
            functions=dict(self.functions),
            workspace=self.workspace.shared() if self.workspace else None,
            network=self.network.copy() if self.network else None,
        )

    def of_sibling(self, files: SiblingFiles) -> 'SandboxOptions':
        """The options of `Sandbox.sibling`."""
        make = {
            'shared': self.shared,
            'read_only': self._read_only,
            'own': self._separate,
            'writable': self._writable,
        }
        if files not in make:
            msg = f"files must be 'shared', 'read_only', 'own' or 'writable', not {files!r:.100}"
            raise SandboxError(msg)
        return make[files]()

    def _separate(self) -> 'SandboxOptions':
        """The options of a sandbox with the same settings, whose workspace is a temporary one of its own."""
        if self.workspace is None:
            return self.shared()
        own = Workspace.temporary()
        mounts = [mount for mount in self.mounts if mount.target != WORKSPACE]
        mount = Mount(source=own.folder, target=WORKSPACE, writable=True)
        return replace(replace(self, workspace=None).shared(), workspace=own, mounts=(*mounts, mount), write_advice='')

    def _read_only(self) -> 'SandboxOptions':
        """The options of a sandbox with the same files, none of which it can change."""
        return replace(
            replace(self, workspace=None).shared(),
            workspace=self.workspace.shared(read_only=True) if self.workspace else None,
            mounts=tuple(replace(mount, writable=False) for mount in self.mounts),
            folders=(),
            write_advice='files are read-only for your code',
        )

    def _writable(self) -> 'SandboxOptions':
        """The options of a sandbox that may change the files that code of this one may not."""
        targets = {folder.target for folder in self.writable_folders if not folder.read_only}
        mounts = [replace(mount, writable=mount.writable or mount.target in targets) for mount in self.mounts]
        return replace(self.shared(), mounts=tuple(mounts), write_advice='')

    @property
    def writable_folders(self) -> tuple[Workspace, ...]:
        """The folders that cells or the host may change: the workspace first."""
        return (self.workspace, *self.folders) if self.workspace else self.folders

    def disconnect(self) -> None:
        """Close the network connections of an interpreter that has ended."""
        if self.network is not None:
            self.network.close()


def backend_settings(settings: SandboxSettings) -> dict[str, object]:
    """The settings of the backend among those of a sandbox, after a check of the names and types of all."""
    of_backend = BackendSettings.__annotations__
    if unknown := settings.keys() - SandboxSettings.__annotations__.keys():
        known = ', '.join(sorted(SandboxSettings.__annotations__, key=lambda name: name in of_backend))
        msg = f'Sandbox.create has no setting {min(unknown)!r}; it has {known}'
        raise TypeError(msg)
    check_settings(settings)
    return {name: value for name, value in settings.items() if name in of_backend}


async def choose_backend(settings: SandboxSettings, more: Iterable[str] = ()) -> str:
    """The backend for `auto`: `wasm`, unless one of the packages, or of these more, has native code; then `process`."""
    if wanted := [*_package_texts(settings), *more]:
        from habilis.sandbox.packages.installation import merge, native_reason

        if reason := await asyncio.to_thread(native_reason, merge((), wanted, replaces=True)):
            logger.info('sandbox="auto" chose process: %s', reason)
            return 'process'
    return 'wasm'


async def make_options(settings: SandboxSettings, python: Callable[[], PythonTarget]) -> SandboxOptions:
    """Prepare the settings of `Sandbox.create`; download packages for this Python if needed."""
    functions = host_functions(settings.get('tools') or ())
    variables = pack_variables(settings.get('variables') or {})
    env = _environment(settings.get('env'))
    mounted = _mounts(settings.get('mounts'))
    protect = settings.get('protect', True)
    writable = [mount for mount in mounted if mount.writable]
    folders = tuple(Workspace(mount.source, target=mount.target, protected=protect) for mount in writable)
    paths: list[str] = []
    installed = await Packages(python=python).add(_package_texts(settings))
    if installed.folder is not None:
        mounted.append(Mount(source=installed.folder, target=PACKAGES))
        paths.append(PACKAGES)
    read_only = settings.get('read_only', False)
    advice = read_only if isinstance(read_only, str) else ''
    space = _workspace(settings.get('workspace'), read_only is True, protect)
    if space is not None:
        mounted.append(Mount(source=space.folder, target=WORKSPACE, writable=not read_only))
        paths.append(WORKSPACE)
    if advice:
        mounted = [replace(mount, writable=False) for mount in mounted]
    return SandboxOptions(
        limits=settings.get('limits') or Limits(),
        functions=functions,
        variables=variables,
        workspace=space,
        mounts=tuple(mounted),
        folders=folders,
        paths=tuple(paths),
        packages=installed,
        env=env,
        write_advice=advice,
        network=make_network(settings.get('network')),
        code_rules=settings.get('code_rules'),
        answer_input=_input_function(settings.get('input')),
        checkpoints=settings.get('checkpoints', True),
    )


def _package_texts(settings: SandboxSettings) -> list[str]:
    packages = settings.get('packages') or ()
    return [packages] if isinstance(packages, str) else [package_text(package) for package in packages]


def package_text(package: object) -> str:
    """A package as text. Raises `TypeError` if it is neither text nor a path."""
    if not isinstance(package, str | os.PathLike):
        raise wrong('packages', package, "a list such as ['attrs==25.3']")
    return str(os.fspath(cast('PathLike', package)))


def _workspace(workspace: PathLike | bool | None, read_only: bool, protect: bool) -> Workspace | None:
    if workspace is None or workspace is False:
        return None
    if workspace is True:
        return Workspace.temporary(read_only=read_only)
    return Workspace.at(Path(workspace), must_exist=read_only, read_only=read_only, protected=protect)


def _mounts(mounts: Mapping[str, PathLike] | Iterable[Mount] | None) -> list[Mount]:
    """The mounts, validated. A mapping has folders by their path inside, read-only."""
    if isinstance(mounts, Mapping):
        pairs = cast('Mapping[str, PathLike]', mounts).items()
        mounts = [Mount(source=Path(source), target=target) for target, source in pairs]
    made = [_mount(mount) for mount in mounts or ()]
    targets = [mount.target for mount in made]
    if twice := [target for target in targets if targets.count(target) > 1]:
        msg = f'cannot mount two folders at {twice[0]!r}'
        raise SandboxError(msg)
    return made


def _mount(mount: Mount) -> Mount:
    folder = usable_folder(Path(mount.source), 'the folder to mount,', make=False)
    target = str(PurePosixPath(mount.target))
    parts = PurePosixPath(target).parts
    if not target.startswith('/') or '..' in parts or len(parts) < 2 or parts[1] in ('workspace', 'packages', 'python'):
        msg = f'cannot mount at {target!r}: use an absolute path such as /data, outside /workspace and /packages'
        raise SandboxError(msg)
    return replace(mount, source=folder, target=target)


def _environment(env: Mapping[str, str] | None) -> dict[str, str]:
    for name, value in (env or {}).items():
        if not name or '=' in name or '\0' in name or '\0' in value:
            msg = f'{name!r} is not a valid environment variable'
            raise SandboxError(msg)
    return dict(env or {})


def _input_function(answers: AnswerInput | Iterable[str] | None) -> AnswerInput | None:
    if answers is None or callable(answers):
        return answers
    lines = iter(answers)

    def answer(prompt: str) -> str:
        for line in lines:
            return line
        msg = 'no more lines of input were given to the sandbox'
        raise EOFError(msg)

    return answer
