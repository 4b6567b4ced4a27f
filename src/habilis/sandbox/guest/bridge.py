"""Messages to the host, the only way out of the sandbox. Each is a text with one reply.

The first character of a message says what it is: `o`/`e` output, `c` call a tool, `s` submit an asynchronous one,
`k` cancel it, `r` the result of work that a tool has given, `w` wait, `i` ask for input, `n` use the network, `x` tell
the exit code, `l` tell the lines of the statement that begins, `a` a piece of a long answer. A reply that starts with
`!` ends the cell; the rest is the kind of the limit and, after a space, what to tell.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, cast

from habilis.core.codec import CodecError, Json, NotPlain, check_size, dump, pack, parse, unpack

Reply = tuple[bool, object]
PIECE = 1 << 16
"""Characters of a piece. The caches of a processor hold all copies of it: 1 MB at once takes half as long again."""


class CellEnded(BaseException):
    """The host ended this cell: `kind` names the limit. Not an `Exception`: cells must not catch it by accident."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Broken(Exception):
    """The kernel cannot continue; the host replaces the interpreter."""


class ToolError(Exception):
    """A host tool failed. The message is the tool's own; its traceback stays on the host."""


# Cells see them as builtins.
CellEnded.__module__ = ToolError.__module__ = 'builtins'


class Bridge:
    """Encodes messages to the host. `send` is the transport of the backend."""

    def __init__(self, send: Callable[[str], str]) -> None:
        self.send = send
        self._next_id = 0

    def write(self, stream: str, text: str) -> None:
        """Send output. `stream` is `o` or `e`."""
        self._ask(stream + text)

    def call(self, name: str, arguments: Json) -> object:
        """Call a tool and wait for its answer."""
        reply = parse(self._ask('c' + _bounded(name, dump([name, arguments]))))
        while isinstance(reply, dict) and 'do' in reply:  # the tool has something done here
            reply = parse(self._ask('r' + dump(do_work(reply['do']))))
        return result_of(reply)

    def submit(self, name: str, arguments: Json) -> int:
        """Start an asynchronous tool; `wait` returns its answer with the number that is returned here."""
        self._next_id += 1
        self._ask('s' + _bounded(name, dump([self._next_id, name, arguments])))
        return self._next_id

    def cancel(self, number: int) -> None:
        """Cancel an asynchronous tool."""
        self._ask(f'k{number}')

    def wait(self, seconds: float | None) -> list[tuple[int, Json]]:
        """Wait for answers, at most so many seconds; each comes with its number."""
        return cast('list[tuple[int, Json]]', parse(self._ask('w' + dump(seconds))))

    def input(self, prompt: str) -> str:
        """Ask the host for a line of input."""
        return str(result_of(parse(self._ask('i' + dump(prompt)))))

    def network(self, request: Json) -> Json:
        """Request an operation on a connection."""
        answer = parse(self._ask('n' + dump(request)))
        result_of(answer)
        return cast('dict[str, Json]', answer)['ok']

    def report_position(self, lines: str) -> None:
        """Tell which lines of the cell run now: nothing else is known of a cell that is stopped by force."""
        try:
            self._ask('l' + lines)
        except CellEnded:
            raise
        except BaseException as error:  # an earlier cell has tampered with the kernel
            raise Broken('bridge') from error

    def _ask(self, message: str) -> str:
        reply = self.send(message)
        if reply[:1] == '!':
            kind, _, message = reply[1:].partition(' ')
            raise CellEnded(kind, message)
        return reply


def do_work(work: Any) -> dict[str, Json]:
    """Do what a tool of the host wants done here: run a command."""
    from habilis.sandbox.guest.shell import run_command

    return run_command(**work)


def _bounded(tool: str, message: str) -> str:
    try:
        check_size(message)
    except CodecError as error:
        msg = f'{tool}: what it is called with {error}; pass less, or a file of the workspace'
        raise ValueError(msg) from None
    return message


def result_of(reply: Json) -> object:
    """The value of a tool's reply, or its exception raised here."""
    answer = cast('dict[str, Json]', reply)
    if 'ok' in answer:
        return unpack(answer['ok'])
    kind, message = cast('tuple[str, str]', answer['error'])
    raise exception_of(kind, message)


def exception_of(kind: str, message: str) -> Exception:
    """The host's exception, as the built-in class of that name where there is one, else as `ToolError`."""
    known = getattr(builtins, kind, None)
    if isinstance(known, type) and issubclass(known, Exception):
        try:
            return known(message)
        except TypeError:  # UnicodeDecodeError, for one, needs more arguments
            pass
    return ToolError(message if kind == 'ToolError' else f'{kind}: {message}')


def pack_arguments(tool: str, names: list[str], args: tuple[object, ...], kwargs: dict[str, object]) -> Json:
    """The arguments as plain data; the error for anything else names the argument."""
    packed_args: list[Json] = []
    for index, value in enumerate(args):
        label = names[index] if index < len(names) else f'number {index + 1}'
        packed_args.append(_pack_argument(tool, label, value))
    packed_kwargs: dict[str, Json] = {name: _pack_argument(tool, name, value) for name, value in kwargs.items()}
    return [packed_args, packed_kwargs]


def _pack_argument(tool: str, label: str, value: object) -> Json:
    try:
        return pack(value)
    except NotPlain as error:
        place = f' at {error.path}' if error.path else ''
        msg = (
            f'{tool}: argument {label!r}{place} {error.reason}; tools take plain data (numbers, text, lists, dicts, …)'
        )
        raise TypeError(msg) from None
