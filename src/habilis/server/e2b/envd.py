"""Commands and files of a machine as E2B's SDK wants them: Connect services made of the server classes of the SDK."""

import asyncio
import contextvars
import secrets
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import Any, cast

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from habilis.core.narrowing import expect_list
from habilis.server.access import BodyRefused
from habilis.server.e2b.callers import NOT_FOUND
from habilis.server.e2b.commands import Command, Ended, Follower
from habilis.server.e2b.machine import HostedMachine, MachineError, MachineGone
from habilis.server.models import check_json

try:
    from connectrpc.code import Code
    from connectrpc.errors import ConnectError
    from e2b.envd.client_shared import ENVD_JSON_CODEC
    from e2b.envd.filesystem import filesystem_pb as files
    from e2b.envd.filesystem.filesystem_connect import Filesystem, FilesystemASGIApplication
    from e2b.envd.process import process_pb as pb
    from e2b.envd.process.process_connect import Process, ProcessASGIApplication
    from protobuf import Oneof
    from protobuf.wkt import Timestamp
except ImportError as error:
    msg = 'the classes of E2B\'s protocol are missing: pip install "habilis[e2b]"'
    raise ImportError(msg) from error

KEEPALIVE_SECONDS = 10.0
"""After so many seconds without output something is sent, which finds out whether the client is still there."""

WATCH_SECONDS = 0.5
MAX_WATCHERS = 20
WATCH_DEPTH = 50
current_machine: 'contextvars.ContextVar[HostedMachine]' = contextvars.ContextVar('habilis_machine')
"""The machine of the request."""

_CODES = {code.value: code for code in Code}
States = dict[str, files.EntryInfo]


def make_services(body_bytes: int) -> dict[str, ASGIApp]:
    """The services by the start of their paths."""
    settings: Any = {'codecs': [_Codec()], 'read_max_bytes': body_bytes}
    return {
        '/process.Process': _Service(cast('ASGIApp', ProcessASGIApplication(_Commands(), **settings))),
        '/filesystem.Filesystem': _Service(cast('ASGIApp', FilesystemASGIApplication(_Files(), **settings))),
    }


class _Codec:
    """The codec of the SDK, whose error blames the server for what a client has sent."""

    _codec: Any = ENVD_JSON_CODEC
    name = ENVD_JSON_CODEC.name

    def encode(self, message: Any) -> bytes:
        return message.data if isinstance(message, _Encoded) else bytes(ENVD_JSON_CODEC.encode(message))

    def decode(self, data: bytes | bytearray, message_class: Any) -> Any:
        try:
            check_json(bytes(data))
        except ValueError as error:
            raise ConnectError(Code.INVALID_ARGUMENT, str(error)) from None
        try:
            return self._codec.decode(data, message_class)
        except ConnectError:
            raise ConnectError(Code.INVALID_ARGUMENT, f'not a valid {message_class.__name__}') from None


class _Service:
    """Gives a service the machine of the request, and its refusals as errors of Connect."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope['type'] != 'http':
            await send({'type': 'websocket.close'})
            return

        async def receive_some() -> Message:
            try:
                return await receive()
            except BodyRefused as refused:
                raise ConnectError(Code.INVALID_ARGUMENT, str(refused)) from None

        current_machine.set(scope['machine'])
        # The library takes headers for UTF-8, and fails if they are not.
        headers = [(name, value.decode('latin-1').encode()) for name, value in scope['headers']]
        await self._app({**scope, 'headers': headers}, receive_some, send)


async def ask(operation: str, *arguments: object) -> object:
    """Have something done in the machine of the request."""
    with _explained():
        return await current_machine.get().ask(operation, *arguments)


@contextmanager
def _explained() -> Generator[None]:
    try:
        yield
    except MachineError as error:
        raise ConnectError(_CODES.get(error.code, Code.INTERNAL), str(error)) from None
    except MachineGone:
        raise ConnectError(Code.UNAVAILABLE, NOT_FOUND) from None


class _Commands(Process):
    """Commands. Their user is always that of the sandbox."""

    async def start(self, request: pb.StartRequest, ctx: Any) -> AsyncIterator[pb.StartResponse]:
        """Start a command, and send what it writes. It goes on if the client is gone, until its timeout."""
        if request.process is None or request.has_field('pty'):
            raise ConnectError(Code.UNIMPLEMENTED, 'this server has commands, and no terminals')
        seconds = None if ctx.timeout_ms is None else ctx.timeout_ms / 1000
        with _explained():
            follower = await current_machine.get().run(
                [request.process.cmd, *request.process.args],
                env=dict(request.process.envs),
                cwd=request.process.cwd,
                tag=request.tag,
                stdin=request.stdin or not request.has_field('stdin'),
                seconds=seconds,
            )
        async with aclosing(_events(follower)) as events:
            async for event in events:
                yield pb.StartResponse(event=event)

    async def connect(self, request: pb.ConnectRequest, ctx: object) -> AsyncIterator[pb.ConnectResponse]:
        """Send what a command writes from now on."""
        async with aclosing(_events(_command(request.process).follow())) as events:
            async for event in events:
                yield pb.ConnectResponse(event=event)

    async def list(self, request: pb.ListRequest, ctx: object) -> pb.ListResponse:
        """The commands that run."""
        commands = [command for command in current_machine.get().commands.values() if command.argv and command.pid]
        return pb.ListResponse(processes=[_describe(command) for command in commands])

    async def send_input(self, request: pb.SendInputRequest, ctx: object) -> pb.SendInputResponse:
        """Write to stdin."""
        given = request.input.input if request.input else None
        if given is None or given.field != 'stdin':
            raise ConnectError(Code.UNIMPLEMENTED, 'this server has commands, and no terminals')
        await ask('input', _command(request.process).name, given.value)
        return pb.SendInputResponse()

    async def close_stdin(self, request: pb.CloseStdinRequest, ctx: object) -> pb.CloseStdinResponse:
        """Close stdin."""
        await ask('close_input', _command(request.process).name)
        return pb.CloseStdinResponse()

    async def send_signal(self, request: pb.SendSignalRequest, ctx: object) -> pb.SendSignalResponse:
        """Send a signal to a command and its children."""
        await ask('signal', _command(request.process).name, int(request.signal.value))
        return pb.SendSignalResponse()


def _command(process: pb.ProcessSelector | None) -> Command:
    wanted = process.selector if process else None
    for command in current_machine.get().commands.values():
        if wanted and command.argv and wanted.value == (command.pid if wanted.field == 'pid' else command.tag):
            return command
    raise ConnectError(Code.NOT_FOUND, f'process {wanted.value if wanted else ""} not found')


def _describe(command: Command) -> pb.ProcessInfo:
    cmd, *args = command.argv
    config = pb.ProcessConfig(cmd=cmd, args=args, envs=command.env, cwd=command.cwd or None)
    return pb.ProcessInfo(config=config, pid=command.pid, tag=command.tag or None)


async def _events(follower: Follower) -> AsyncGenerator[pb.ProcessEvent]:
    """The events of a command: its start, its output and its end."""
    try:
        yield pb.ProcessEvent(event=Oneof('start', pb.ProcessEvent.StartEvent(pid=follower.command.pid)))
        while True:
            try:
                async with asyncio.timeout(KEEPALIVE_SECONDS):
                    told = await follower.next()
            except TimeoutError:
                yield pb.ProcessEvent(event=Oneof('keepalive', pb.ProcessEvent.KeepAlive()))
                continue
            if isinstance(told, Ended):
                break
            output: Any = Oneof(told[0], told[1])
            yield pb.ProcessEvent(event=Oneof('data', pb.ProcessEvent.DataEvent(output=output)))
        if current_machine.get().ended:
            raise ConnectError(Code.UNAVAILABLE, NOT_FOUND)
        yield pb.ProcessEvent(event=Oneof('end', _end(told.status)))
    finally:
        follower.close()


def _end(status: int) -> pb.ProcessEvent.EndEvent:
    if status >= 0:
        return pb.ProcessEvent.EndEvent(exit_code=status, exited=True, status=f'exit status {status}')
    return pb.ProcessEvent.EndEvent(
        exit_code=128 - status, status=f'signal {-status}', error=f'killed by signal {-status}'
    )


class _Files(Filesystem):
    """Files and folders. All paths are those inside the sandbox."""

    def __init__(self) -> None:
        self._watchers: weakref.WeakKeyDictionary[HostedMachine, dict[str, _Watcher]] = weakref.WeakKeyDictionary()

    async def stat(self, request: files.StatRequest, ctx: object) -> files.StatResponse:
        """Describe a file or folder."""
        return files.StatResponse(entry=_entry(await ask('stat', request.path)))

    async def list_dir(self, request: files.ListDirRequest, ctx: object) -> files.ListDirResponse:
        """Describe what is in a folder."""
        entries = await ask('list', request.path, max(1, request.depth))
        return cast('files.ListDirResponse', await asyncio.to_thread(_encoded_list, entries))

    async def make_dir(self, request: files.MakeDirRequest, ctx: object) -> files.MakeDirResponse:
        """Make a folder and those above it."""
        return files.MakeDirResponse(entry=_entry(await ask('make_dir', request.path)))

    async def move(self, request: files.MoveRequest, ctx: object) -> files.MoveResponse:
        """Rename a file or folder."""
        return files.MoveResponse(entry=_entry(await ask('move', request.source, request.destination)))

    async def remove(self, request: files.RemoveRequest, ctx: object) -> files.RemoveResponse:
        """Remove a file, or a folder with all that is in it."""
        await ask('remove', request.path)
        return files.RemoveResponse()

    # Watching: what has changed since the last look ------------------------------------------------------------------

    async def watch_dir(self, request: files.WatchDirRequest, ctx: object) -> AsyncIterator[files.WatchDirResponse]:
        """Send what changes in a folder."""
        depth = WATCH_DEPTH if request.recursive else 1
        before = await _look(request.path, depth)
        yield files.WatchDirResponse(event=Oneof('start', files.WatchDirResponse.StartEvent()))
        waited = 0.0
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            now = await _look(request.path, depth)
            events = _changes(before, now, with_entry=request.include_entry)
            for event in events:
                yield files.WatchDirResponse(event=Oneof('filesystem', event))
            waited = 0.0 if events else waited + WATCH_SECONDS
            if waited >= KEEPALIVE_SECONDS:
                waited = 0.0
                yield files.WatchDirResponse(event=Oneof('keepalive', files.WatchDirResponse.KeepAlive()))
            before = now

    async def create_watcher(self, request: files.CreateWatcherRequest, ctx: object) -> files.CreateWatcherResponse:
        """Remember what is in a folder."""
        mine = self._watchers.setdefault(current_machine.get(), {})
        if len(mine) >= MAX_WATCHERS:
            raise ConnectError(Code.RESOURCE_EXHAUSTED, f'a sandbox may have {MAX_WATCHERS} watchers')
        depth = WATCH_DEPTH if request.recursive else 1
        name = secrets.token_hex(8)
        mine[name] = _Watcher(request.path, depth, request.include_entry, await _look(request.path, depth))
        return files.CreateWatcherResponse(watcher_id=name)

    async def get_watcher_events(
        self, request: files.GetWatcherEventsRequest, ctx: Any
    ) -> files.GetWatcherEventsResponse:
        """What has changed since the last call."""
        watcher = self._watchers.get(current_machine.get(), {}).get(request.watcher_id)
        if watcher is None:
            raise ConnectError(Code.NOT_FOUND, 'watcher not found')
        before, watcher.seen = watcher.seen, await _look(watcher.path, watcher.depth)
        return files.GetWatcherEventsResponse(events=_changes(before, watcher.seen, with_entry=watcher.with_entry))

    async def remove_watcher(self, request: files.RemoveWatcherRequest, ctx: object) -> files.RemoveWatcherResponse:
        """Forget a watcher."""
        self._watchers.get(current_machine.get(), {}).pop(request.watcher_id, None)
        return files.RemoveWatcherResponse()


@dataclass
class _Watcher:
    path: str
    depth: int
    with_entry: bool
    seen: States


@dataclass
class _Encoded:
    """A large message that was encoded on a thread, so that nobody waits for that."""

    data: bytes


def _encoded_list(entries: object) -> _Encoded:
    message = files.ListDirResponse(entries=[_entry(entry) for entry in expect_list(entries)])
    return _Encoded(ENVD_JSON_CODEC.encode(message))


async def _look(path: str, depth: int) -> States:
    """What is in a folder, by the path in it."""
    root = f'{_entry(await ask("stat", path)).path}/'
    return await asyncio.to_thread(_by_path, root, await ask('list', path, depth))


def _by_path(root: str, entries: object) -> States:
    described = [_entry(entry) for entry in expect_list(entries)]
    return {entry.path.removeprefix(root): entry for entry in described}


def _changes(before: States, now: States, *, with_entry: bool) -> list[files.FilesystemEvent]:
    """What has changed between two looks. A renamed file is removed and created."""

    def event(name: str, kind: files.EventType) -> files.FilesystemEvent:
        return files.FilesystemEvent(name=name, type=kind, entry=now.get(name) if with_entry else None)

    found = [event(name, files.EventType.REMOVE) for name in before if name not in now]
    for name, entry in now.items():
        known = before.get(name)
        if known is None:
            found.append(event(name, files.EventType.CREATE))
        elif (known.size, known.modified_time) != (entry.size, entry.modified_time):
            found.append(event(name, files.EventType.WRITE))
        elif known.mode != entry.mode:
            found.append(event(name, files.EventType.CHMOD))
    return found


def _entry(told: Any) -> files.EntryInfo:
    """An entry as the SDK wants it. What the machine tells is not trusted: wrong types are an error."""
    try:
        kinds = {'file': files.FileType.FILE, 'directory': files.FileType.DIRECTORY, 'symlink': files.FileType.SYMLINK}
        seconds, nanos = divmod(told['changed'], 10**9)
        return files.EntryInfo(
            name=told['name'],
            type=kinds.get(told['type'], files.FileType.UNSPECIFIED),
            path=told['path'],
            size=told['size'],
            mode=told['mode'],
            permissions=told['permissions'],
            owner='user',
            group='user',
            modified_time=Timestamp(seconds=seconds, nanos=nanos),
            symlink_target=told['target'] or None,
            is_symlink=bool(told['target']),
        )
    except (TypeError, KeyError, ValueError) as error:
        raise ConnectError(Code.INTERNAL, 'the sandbox sent a malformed answer') from error
