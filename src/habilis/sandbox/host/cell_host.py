"""The host's side of one running request: answers the kernel's messages and enforces the limits.

All messages come from untrusted code. They are parsed strictly, counted, and never executed. Limits are enforced by
what is counted here, whatever the guest says.
"""

import asyncio
import codecs
import contextlib
import contextvars
import operator
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import cast

from habilis.core.codec import CodecError, Json, NotPlain, dump, pack
from habilis.core.errors import ToolCallError
from habilis.core.limits import Limits
from habilis.core.previews import RESULT_LENGTH, shorten
from habilis.sandbox.contract import ErrorKind, Interrupted, Stream, ToolCall
from habilis.sandbox.host.deadline import Deadline, current_deadline
from habilis.sandbox.host.functions import HostFunction, label_arguments
from habilis.sandbox.host.guest_messages import RefusedCall, arguments_of, fields_of, parse_message
from habilis.sandbox.host.guest_work import GuestPort
from habilis.sandbox.host.limit_texts import limit_text
from habilis.sandbox.network import Network

OnOutput = Callable[[Stream, str], object]
AnswerInput = Callable[[str], str]
MAX_IGNORED_REPLIES = 100
"""How many replies that end the cell it may ignore before it is ended by force."""

MAX_RECORDED = 16 << 20
"""Max bytes of arguments in the calls of a `Cell`; later calls are recorded without arguments."""

_UTF_8 = codecs.getincrementaldecoder('utf-8')


class CellHost:
    """Answers one guest during one request."""

    def __init__(
        self,
        *,
        tools: dict[str, HostFunction],
        limits: Limits,
        seconds: float,
        loop: asyncio.AbstractEventLoop,
        on_output: OnOutput | None = None,
        answer_input: AnswerInput | None = None,
        network: Network | None = None,
    ) -> None:
        self._tools = tools
        self.limits = limits
        self._started = time.monotonic()
        self.deadline = Deadline(seconds)
        self._loop = loop
        self._on_output = on_output
        self._answer_input = answer_input
        self._network = network
        self._context = contextvars.copy_context()
        self._context.run(current_deadline.set, self.deadline)
        self._inbox: SimpleQueue[_GuestCall | None] = SimpleQueue()
        self._tasks: dict[int, Future[object]] = {}
        self._working: tuple[_GuestCall, GuestPort] | None = None
        """A call for which the guest does work."""

        self._chunks: dict[Stream, list[str]] = {'stdout': [], 'stderr': []}
        self._decoders: dict[Stream, codecs.IncrementalDecoder] = {}
        self._printed = 0
        self._called = 0
        self._argument_bytes = 0
        self._ignored = 0
        self._force = False
        self.seconds_limit = seconds
        self.ended: ErrorKind | None = None
        self.exit_code: int | None = None
        """What the code said before it ended the interpreter."""

        self.lines: tuple[int, int] | None = None
        """First and last line of the statement that runs, as the guest says."""

        self.waited = 0.0
        """Seconds that the guest waited for time to pass, for tools, connections or input."""

        self._calls: list[tuple[float, ToolCall]] = []

    # Called by the session --------------------------------------------------------------------------------------------

    def end(self, kind: ErrorKind) -> None:
        """End the request at its next message or check. Thread-safe."""
        self.ended = self.ended or kind
        self._force = True
        self._inbox.put(None)
        if self._working is not None:
            self._working[1].wake()

    def output(self, stream: Stream) -> str:
        """The output of a stream so far."""
        if stream in self._decoders:
            self._chunks[stream].append(self._decoders[stream].decode(b'', final=True))
        return ''.join(self._chunks[stream])

    def seconds(self) -> float:
        """Seconds since the request started."""
        return time.monotonic() - self._started

    def close(self) -> None:
        """Cancel the tools that are still running, and record all calls whose answers were not fetched."""
        for task in list(self._tasks.values()):
            task.cancel()
        self._tasks.clear()
        if self._working is not None:
            self._working[1].close()
        while not self._inbox.empty():
            call = self._inbox.get_nowait()
            if call is not None:
                self._record(call)

    # Called by the guest, on the worker thread -----------------------------------------------------------------------

    def answer(self, message: str) -> str:
        """Reply to one message."""
        self.check()
        handler = _HANDLERS.get(message[:1])
        if handler is None:
            return dump({'error': ['RuntimeError', 'unknown message']})
        if message[0] not in _WAITING:
            return handler(self, message[1:])
        began = time.monotonic()
        try:
            return handler(self, message[1:])
        finally:
            self.waited += time.monotonic() - began

    def check(self) -> None:
        """Raise `Interrupted` if the request is over its deadline or was ended."""
        if self._force:
            raise Interrupted
        if self.deadline.is_expired():
            self.ended = self.ended or 'time'
            raise Interrupted

    def write(self, stream: Stream, data: bytes) -> None:
        """Handle output that bypassed the kernel. It cannot be refused, so too much of it ends the guest by force."""
        decoder = self._decoders.setdefault(stream, _UTF_8('replace'))
        if not self._take(stream, decoder.decode(data), len(data)):
            self._force = True

    def _print_out(self, text: str) -> str:
        return '' if self._take('stdout', text, _size(text)) else self._end_cell('output')

    def _print_err(self, text: str) -> str:
        return '' if self._take('stderr', text, _size(text)) else self._end_cell('output')

    def _take(self, stream: Stream, text: str, size: int) -> bool:
        room = self.limits.output_bytes - self._printed
        self._printed += size
        kept = text if size <= room else _first_bytes(text, room)
        if kept:
            self._chunks[stream].append(kept)
            if self._on_output is not None:
                self._loop.call_soon_threadsafe(self._on_output, stream, kept)
        if size > room:
            self.ended = self.ended or 'output'
            return False
        return True

    def _end_cell(self, kind: ErrorKind) -> str:
        """The reply that ends a cell; a cell that ignores it too often is ended by force."""
        self.ended = self.ended or kind
        self._ignored += 1
        if self._ignored > MAX_IGNORED_REPLIES:
            raise Interrupted
        return f'!{kind} {limit_text(kind, self.limits, self.seconds_limit)}'

    def _call(self, body: str) -> str:
        self._argument_bytes += len(body)
        try:
            name, arguments = fields_of(body, str, list)
            tool = self._tool(str(name))
        except RefusedCall as refused:
            return dump(refused.reply)
        if self._called > self.limits.calls:
            return self._end_cell('calls')
        if tool.is_async:
            return dump({'error': ['TypeError', f'{tool.name} is asynchronous: await it']})
        call = _GuestCall(tool)
        if tool.uses_guest and self._working is None:
            self._working = call, GuestPort()
            context = self._working[1].entered(self._context)
            self._working[1].start(lambda: self._run(call, arguments, context))
            return self._next_work(*self._working)
        self._run(call, arguments)
        reply = self._finish(call)
        self.check()
        return dump(reply)

    def _next_work(self, call: '_GuestCall', port: GuestPort) -> str:
        """What the guest is to do for a call, or its result."""
        work = port.next()
        if work is not None:
            return dump({'do': work})
        if not port.is_done:  # the cell has ended
            self.check()
        self._working = None
        reply = self._finish(call)
        self.check()
        return dump(reply)

    def _take_work(self, body: str) -> str:
        if self._working is None:
            return dump({'error': ['RuntimeError', 'unknown message']})
        call, port = self._working
        try:
            port.give(parse_message(body))
        except CodecError:
            port.close()
        return self._next_work(call, port)

    def _submit(self, body: str) -> str:
        self._argument_bytes += len(body)
        try:
            number, name, arguments = fields_of(body, int, str, list)
            if number in self._tasks:
                raise RefusedCall('RuntimeError', 'a call with this number is running')
            tool = self._tool(str(name))
        except RefusedCall as refused:
            return dump(refused.reply)
        if self._called > self.limits.calls:
            return self._end_cell('calls')
        self._start(cast('int', number), tool, arguments)
        return ''

    def _tool(self, name: str) -> HostFunction:
        self._called += 1
        tool = self._tools.get(name)
        if tool is None:
            raise RefusedCall('NameError', f'there is no tool called {name[:100]!r}')
        return tool

    def _run(self, call: '_GuestCall', packed: Json, context: contextvars.Context | None = None) -> None:
        """Call a plain function on this thread, which is that of the guest in most cases: it waits anyway."""
        if self._unpack(call, packed):
            try:
                call.result = (context or self._context).run(call.tool.call, *call.args, **call.kwargs)
            except BaseException as raised:
                call.error = raised
        call.seconds = time.monotonic() - call.started

    def _unpack(self, call: '_GuestCall', packed: Json) -> bool:
        """Unpack the arguments of a call. False if they are malformed; raises `Interrupted` if the cell has ended."""
        try:
            call.args, call.kwargs = arguments_of(packed)
        except CodecError as raised:
            call.error = raised
            return False
        self.check()  # parsing may have taken long, and no tool starts after the end of its cell
        return True

    def _start(self, number: int, tool: HostFunction, packed: Json) -> None:
        """Start a coroutine function on the event loop of the session; the call is put into the inbox when it ends."""
        call = _GuestCall(tool, number)
        if not tool.is_async:
            self._run(call, packed)
            self._inbox.put(call)
            return
        if not self._unpack(call, packed):
            self._inbox.put(call)
            return
        try:
            coroutine = tool.call(*call.args, **call.kwargs)
            task = self._context.run(asyncio.run_coroutine_threadsafe, coroutine, self._loop)
        except BaseException as raised:
            call.error = raised
            self._inbox.put(call)
            return
        self._tasks[number] = task

        def finished(done: Future[object]) -> None:
            self._tasks.pop(number, None)
            call.seconds = time.monotonic() - call.started
            try:
                call.result = done.result()
            except BaseException as raised:
                call.error = raised
            self._inbox.put(call)

        task.add_done_callback(finished)

    def _finish(self, call: '_GuestCall') -> Json:
        """The reply to a call, which is recorded. On the thread of the guest: a large result takes time to pack."""
        reply: Json = None
        if call.error is None:
            try:
                reply = {'ok': pack(call.result)}
            except NotPlain as error:
                call.error = TypeError(f'the tool {call.tool.name} returned something that is not plain data: {error}')
        self._record(call)
        return reply if call.error is None else _error_reply(call.error)

    def _record(self, call: '_GuestCall') -> None:
        kept = self._argument_bytes <= MAX_RECORDED
        done = ToolCall(
            tool=call.tool.name,
            arguments=label_arguments(call.tool.parameters, call.args, call.kwargs) if kept else None,
            ok=call.error is None,
            result=shorten(call.result, RESULT_LENGTH) if call.error is None else '',
            seconds=call.seconds,
            error=None if call.error is None else f'{type(call.error).__name__}: {_message(call.error)}',
        )
        self._calls.append((call.started, done))

    @property
    def calls(self) -> list[ToolCall]:
        """The calls that have ended, in the order in which they started."""
        return [call for _, call in sorted(self._calls, key=operator.itemgetter(0))] if self._calls else []

    def _cancel(self, body: str) -> str:
        task = self._tasks.pop(int(body), None) if body.isascii() and body.isdigit() and len(body) < 20 else None
        if task is not None:
            task.cancel()
        return ''

    def _wait(self, body: str) -> str:
        """Wait for an answer, for the requested time, or until the cell must end."""
        try:
            asked = parse_message(body)
        except CodecError:
            asked = 0
        longest = self.deadline.remaining() + 0.01
        wanted = longest if asked is None else 0.0
        if isinstance(asked, (int, float)) and asked > 0:  # false for NaN
            wanted = min(asked, longest)
        ended: list[_GuestCall | None] = []
        with contextlib.suppress(Empty):
            ended.append(self._next_call(wanted))
            while True:
                ended.append(self._inbox.get_nowait())
        answers: list[Json] = [[call.number, self._finish(call)] for call in ended if call is not None]
        self.check()
        return dump(answers)

    def _use_network(self, body: str) -> str:
        if self._network is None:
            return dump({'error': ['PermissionError', 'this sandbox has no network']})
        try:
            request = parse_message(body)
            return dump({'ok': self._network.handle(request if isinstance(request, list) else [], self.check)})
        except (OSError, ValueError) as raised:
            kind = next(base.__name__ for base in type(raised).__mro__ if base.__module__ == 'builtins')
            return dump({'error': [kind, str(raised)]})

    def _note_exit(self, body: str) -> str:
        self.exit_code = int(body) if body.isascii() and body.isdigit() and len(body) <= 3 else None
        return ''

    def _note_lines(self, body: str) -> str:
        first, _, last = body.partition(' ')
        if all(part.isascii() and part.isdigit() and len(part) < 10 for part in (first, last)):
            self.lines = int(first), int(last)
        return ''

    def _next_call(self, seconds: float) -> '_GuestCall | None':
        """`get_nowait` first: in CPython 3.11 and 3.12 a `get` whose timeout passes too early waits for ever."""
        try:
            return self._inbox.get_nowait()
        except Empty:
            return self._inbox.get(timeout=seconds)

    def _input(self, body: str) -> str:
        if self._answer_input is None:
            text = 'input() is not available in this sandbox (pass input=… to Sandbox.create to answer it)'
            return dump({'error': ['EOFError', text]})
        try:
            prompt = parse_message(body)
            return dump({'ok': str(self._context.run(self._answer_input, str(prompt)))})
        except BaseException as raised:
            return dump(_error_reply(raised))


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode('utf-8', 'backslashreplace'))


def _first_bytes(text: str, size: int) -> str:
    return text.encode('utf-8', 'backslashreplace')[: max(0, size)].decode('utf-8', 'ignore')


@dataclass
class _GuestCall:
    """A call of a tool, and what became of it."""

    tool: HostFunction
    number: int = 0
    started: float = field(default_factory=time.monotonic)
    args: list[object] = field(default_factory=list[object])
    kwargs: dict[str, object] = field(default_factory=dict[str, object])
    result: object = None
    error: BaseException | None = None
    seconds: float = 0.0


def _error_reply(error: BaseException) -> Json:
    """An error of a tool as a reply: class and message, without traceback."""
    if isinstance(error, (CancelledError, asyncio.CancelledError)):
        return {'error': ['ToolError', 'the tool was cancelled']}
    kind = 'ToolError' if isinstance(error, ToolCallError) else type(error).__name__  # its message says what happened
    return {'error': [kind, _message(error)[:10_000]]}


def _message(error: BaseException) -> str:
    try:
        return str(error.args[0]) if isinstance(error, KeyError) and len(error.args) == 1 else str(error)
    except Exception:  # its `__str__` may do anything
        return ''


_HANDLERS: dict[str, Callable[[CellHost, str], str]] = {
    'o': CellHost._print_out,  # pyright: ignore[reportPrivateUsage]
    'e': CellHost._print_err,  # pyright: ignore[reportPrivateUsage]
    'c': CellHost._call,  # pyright: ignore[reportPrivateUsage]
    's': CellHost._submit,  # pyright: ignore[reportPrivateUsage]
    'k': CellHost._cancel,  # pyright: ignore[reportPrivateUsage]
    'r': CellHost._take_work,  # pyright: ignore[reportPrivateUsage]
    'w': CellHost._wait,  # pyright: ignore[reportPrivateUsage]
    'n': CellHost._use_network,  # pyright: ignore[reportPrivateUsage]
    'i': CellHost._input,  # pyright: ignore[reportPrivateUsage]
    'x': CellHost._note_exit,  # pyright: ignore[reportPrivateUsage]
    'l': CellHost._note_lines,  # pyright: ignore[reportPrivateUsage]
}
_WAITING = frozenset('wni')
"""Messages that the guest sends to wait: for time and tools, connections, input."""
