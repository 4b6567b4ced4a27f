"""The kernel: takes one request from the host, does it, answers. All state of a sandbox lives in its namespace."""

import ast
import base64
import builtins
import errno
import inspect
import linecache
import os
import random
import sys
import time
import types
from asyncio import events
from collections.abc import Callable, Coroutine
from typing import cast

from habilis.core.codec import Json, NotPlain, dump, pack, parse, unpack
from habilis.sandbox.guest import state
from habilis.sandbox.guest.bridge import Bridge, CellEnded
from habilis.sandbox.guest.display import displays_of
from habilis.sandbox.guest.loop import GuestLoop, GuestPolicy, HostSelector
from habilis.sandbox.guest.output import HostStream
from habilis.sandbox.guest.policy import ImportGate, Policy, PolicyError, check
from habilis.sandbox.guest.show import text_of
from habilis.sandbox.guest.tools import HostTool, make_tool
from habilis.sandbox.guest.trace import CELL_PREFIX, describe, is_user_file, remember_source

Request = dict[str, Json]
_PYTHON = f'{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}'
_VALUE = ' value'  # not an identifier, so no cell can have it as a name
_HIDDEN = frozenset({'__builtins__', '__warningregistry__', '__annotations__', '__conditional_annotations__', _VALUE})
_NO_SUCH_FILE = (errno.ENOENT, getattr(errno, 'ENOTCAPABLE', errno.ENOENT))
_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
# Bound now: a cell that patches these modules for its own ends must not confuse the kernel.
_exec, _compile, _parse_tree, _isinstance = exec, compile, ast.parse, isinstance


class Kernel:
    """Runs cells. One per sandbox, made when the component is built, woken by the first request."""

    def __init__(self, send: Callable[[str], str]) -> None:
        self.bridge = Bridge(send)
        self.selector = HostSelector(self.bridge)
        self.main = types.ModuleType('__main__')
        self.namespace: state.Values = self.main.__dict__
        self.tools: dict[str, HostTool] = {}
        self.stdout = HostStream(self.bridge, 'o', '<stdout>')
        self.stderr = HostStream(self.bridge, 'e', '<stderr>')
        self.policy: Policy | None = None
        self.loop: GuestLoop | None = None
        self.displays: list[Json] = []
        self.cells = 0
        self.has_files = False
        self.reserve: bytearray | None = bytearray(1 << 19)  # given back when memory runs out, to tell of it
        self.saved: bytes | None = None
        self._initial = frozenset(self.namespace)

    def install(self) -> None:
        """Take over the interpreter: its main module, streams, sleep, input and event loop."""
        self.namespace.update(__builtins__=builtins, display=self.display)
        self._initial = frozenset(self.namespace)
        sys.modules['__main__'] = self.main
        sys.stdout, sys.stderr = self.stdout, self.stderr
        sys.argv = ['']
        builtins.input = self.input  # type: ignore[assignment]
        for name in ('exit', 'quit'):
            setattr(builtins, name, sys.exit)
        time.sleep = self.sleep  # type: ignore[assignment]
        events._event_loop_policy = GuestPolicy(self.selector)  # type: ignore[attr-defined] # pyright: ignore
        ImportGate().install(lambda: self.policy, lambda frame: is_user_file(frame.f_code.co_filename))

    def forget(self) -> None:
        """Drop everything the cells left, as if none had run."""
        for name in self._user_values():
            del self.namespace[name]
        for filename in [name for name in linecache.cache if name.startswith(CELL_PREFIX)]:
            del linecache.cache[filename]
        self.cells, self.saved, self.loop = 0, None, None

    def enter(self, message: str) -> str:
        """Do what the host asks. Whatever happens inside, the answer is one JSON text."""
        request = cast('Request', parse(message))
        if 'setup' in request:
            self.set_up(cast('Request', request['setup']))
        handler = _HANDLERS[cast('str', request['op'])]
        return dump(handler(self, request))

    def set_up(self, setup: Request) -> None:
        """What a new sandbox needs before its first cell: fresh randomness, tools, paths, variables."""
        random.seed()
        for path in cast('list[str]', setup.get('paths', [])):
            sys.path.append(path)
        for description in cast('list[dict[str, Json]]', setup.get('tools', [])):
            tool = make_tool(self.bridge, self.selector, description)
            self.tools[tool.__name__] = tool
            self.namespace[tool.__name__] = tool
        if 'cwd' in setup:
            self.has_files = True
            os.chdir(cast('str', setup['cwd']))
        self.namespace.update(cast('state.Values', unpack(setup.get('variables', {}))))

    # The requests -----------------------------------------------------------------------------------------------------

    def run(self, request: Request) -> Json:
        """Run one cell."""
        self.cells += 1
        filename = f'{CELL_PREFIX}{self.cells}>'
        code = cast('str', request['code'])
        policy = request.get('policy')
        self.policy = Policy.from_json(cast('dict[str, object]', policy)) if policy is not None else None
        self.displays = []
        self._restore_streams()
        answer: Request = {'error': None}
        try:
            self._execute(code, filename, answer)
        except BaseException as error:
            answer['error'] = self._explain(error)
        self.namespace.pop(_VALUE, None)
        ended = self.stdout.finish() or self.stderr.finish()
        if ended and answer['error'] is None:
            answer['error'] = describe(CellEnded(ended), ended)
        answer['displays'] = self.displays
        self._save_if_quick(answer)
        return answer

    def save(self, request: Request) -> Json:
        """All variables, as text the host stores and does not read."""
        data, lost = state.save(self._user_values(), self.namespace)
        self.saved = data
        return {'state': base64.b64encode(data).decode('ascii'), 'python': _PYTHON, 'lost': cast('Json', lost)}

    def load(self, request: Request) -> Json:
        """Variables that `save` gave, in this sandbox or another."""
        if request['python'] != _PYTHON:
            return {'problem': f'the snapshot was made by {request["python"]}, this sandbox runs {_PYTHON}'}
        try:
            state.load(base64.b64decode(cast('str', request['state'])), self.namespace, self.tools)
        except Exception as error:
            return {'problem': f'the snapshot cannot be restored here: {type(error).__name__}: {error}'}
        self.cells = cast('int', request.get('cells', 0))
        return {}

    def get(self, request: Request) -> Json:
        """The values of some variables, or of all that are plain data."""
        wanted = cast('list[str] | None', request['names'])
        values: dict[str, Json] = {}
        missing: dict[str, Json] = {}
        for name in self._user_values() if wanted is None else wanted:
            if name not in self.namespace:
                missing[name] = 'is not defined'
                continue
            try:
                values[name] = pack(self.namespace[name])
            except NotPlain as error:
                missing[name] = str(error).replace('the value ', '', 1)
        return {'values': values, 'missing': missing}

    def set(self, request: Request) -> Json:
        """Set variables from the host."""
        self.namespace.update(cast('state.Values', unpack(request['values'])))
        return {}

    # One cell ---------------------------------------------------------------------------------------------------------

    def _execute(self, code: str, filename: str, answer: Request) -> None:
        remember_source(filename, code)
        tree = _parse_tree(code, filename)
        if self.policy is not None:
            check(tree, self.policy)
        if tree.body and _isinstance(last := tree.body[-1], ast.Expr):
            target = ast.copy_location(ast.Name(_VALUE, ast.Store()), last)
            tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
        compiled = _compile(tree, filename, 'exec', _AWAIT)
        if compiled.co_flags & inspect.CO_COROUTINE:
            self._run_coroutine(types.FunctionType(compiled, self.namespace)())
        else:
            _exec(compiled, self.namespace)
        if _VALUE in self.namespace:
            self._answer_value(self.namespace.pop(_VALUE), answer)

    def _run_coroutine(self, coroutine: Coroutine[object, object, object]) -> None:
        if self.loop is None or self.loop.is_closed():
            self.loop = GuestLoop(self.selector)
        self.loop.run_until_complete(coroutine)

    def _answer_value(self, value: object, answer: Request) -> None:
        if value is None:
            return
        try:
            answer['value'] = pack(value)
            whole = True
        except NotPlain as error:
            whole = 'parts' not in error.reason and 'nested' not in error.reason
        answer['text'] = text_of(value, whole)
        self.displays.extend(displays_of(value))

    def _explain(self, error: BaseException) -> Json:
        """The error as data. A call of `exit()` ends the cell; only a code other than zero makes it an error."""
        if isinstance(error, MemoryError):
            self.reserve = None
        try:
            if isinstance(error, SystemExit):
                return None if error.code in (None, 0) else describe(error, 'exit')
            if isinstance(error, OSError) and error.errno in _NO_SUCH_FILE and not self.has_files:
                error.add_note('(a sandbox sees only its workspace and mounts: pass workspace=… to give it one)')
            return describe(error, _kind_of(error))
        except BaseException as second:  # an error whose own methods raise
            return {
                'kind': _kind_of(error),
                'type': type(error).__name__,
                'message': f'(the error could not be shown: {type(second).__name__})',
                'traceback': '',
                'line': None,
            }

    def _save_if_quick(self, answer: Request) -> None:
        """Send the variables along if that costs next to nothing; else the host asks for them when it has time."""
        data = state.quick_save(self._user_values())
        if data is None:
            self.saved = None
            answer['unsaved'] = True
        elif data != self.saved:
            self.saved = data
            answer['state'] = base64.b64encode(data).decode('ascii')
            answer['python'] = _PYTHON

    def _user_values(self) -> state.Values:
        tools = self.tools
        return {
            name: value
            for name, value in self.namespace.items()
            if name not in self._initial and name not in _HIDDEN and tools.get(name, self) is not value
        }

    def _restore_streams(self) -> None:
        """A cell may have replaced or closed them."""
        sys.stdout, sys.stderr = self.stdout, self.stderr
        self.stdout.start()
        self.stderr.start()

    # What cells may call ----------------------------------------------------------------------------------------------

    def display(self, *values: object) -> None:
        """Show values richly: as HTML, an image, … where they offer it, as text otherwise."""
        for value in values:
            shown = displays_of(value)
            self.displays.extend(shown or [['text/plain', text_of(value, True)]])

    def input(self, prompt: object = '', /) -> str:
        """Ask the host for a line of text."""
        self.stdout.flush()
        return self.bridge.input(str(prompt))

    def sleep(self, seconds: float, /) -> None:
        """Sleep on the host, where the time limit can end it."""
        if seconds < 0:
            msg = 'sleep length must be non-negative'
            raise ValueError(msg)
        end = time.monotonic() + seconds
        self.stdout.flush()
        while (left := end - time.monotonic()) > 0:
            for number, reply in self.bridge.wait(left):
                self.selector.resolve(number, reply)


def _kind_of(error: BaseException) -> str:
    if isinstance(error, CellEnded):
        return error.kind
    if isinstance(error, MemoryError) and 'Parser stack' not in str(error):
        return 'memory'
    if isinstance(error, PolicyError):
        return 'policy'
    if isinstance(error, SyntaxError):
        return 'syntax'
    return 'exception'


_HANDLERS: dict[str, Callable[[Kernel, Request], Json]] = {
    'run': Kernel.run,
    'save': Kernel.save,
    'load': Kernel.load,
    'get': Kernel.get,
    'set': Kernel.set,
}
