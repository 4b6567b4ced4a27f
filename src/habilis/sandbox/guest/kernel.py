"""The kernel: handles one request of the host at a time. All state of a sandbox is in the kernel's namespace."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import os
import random
import select
import sys
import time
import types
from asyncio import events
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from habilis.core.codec import Json, NotPlain, TooLarge, dump, pack, parse_with, unpack
from habilis.sandbox.guest import network, optional_rules, state
from habilis.sandbox.guest.answer_size import encode_answer, leave_out_large
from habilis.sandbox.guest.bridge import Bridge, Broken, ToolError, do_work
from habilis.sandbox.guest.children import offer_python
from habilis.sandbox.guest.displays import displays_of, keep_figures, new_figures
from habilis.sandbox.guest.event_loop import GuestPolicy, new_loop, warn_of_coroutines_of
from habilis.sandbox.guest.hints import advice_for
from habilis.sandbox.guest.host_selector import HostSelector
from habilis.sandbox.guest.missing_keys import existing_keys
from habilis.sandbox.guest.optional_rules import CodeRules, CodeRulesError, check
from habilis.sandbox.guest.output import HostStream
from habilis.sandbox.guest.positions import REPORT, report_positions
from habilis.sandbox.guest.tool_names import mentions_tool, refuse_tool_names
from habilis.sandbox.guest.tools import HostTool, Tools, make_tool
from habilis.sandbox.guest.tracebacks import CELL_PREFIX, describe, is_library_file, kind_of, remember_source
from habilis.sandbox.guest.value_text import PLAIN, descriptions, limit_digits, text_of

if TYPE_CHECKING:
    from habilis.sandbox.guest.messages import Request, Setup, ToolDescription

Answer = dict[str, Json]
_PYTHON = f'{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}'
_VALUE = ' value'  # not an identifier, so no cell can have it as a name
_HIDDEN = frozenset({'__builtins__', '__warningregistry__', '__annotations__', '__conditional_annotations__', _VALUE})
_AWAIT, _COROUTINE = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, inspect.CO_COROUTINE
# Bound at import: a cell may patch these modules, and the kernel must keep working.
_eval, _compile, _parse_tree, _isinstance = eval, compile, ast.parse, isinstance
_builtins: state.Values = builtins.__dict__
_STORE = ast.Store()
_COMPILE_ERRORS = (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError, CodeRulesError)
"""What compiling a cell may raise. Anything else means that an earlier cell has tampered with the compiler."""

_INT64 = 1 << 63
_exit = os._exit
_posix: Any = sys.modules[os.name if os.name in sys.modules else 'os']
_NO_EXPRESSION_START = frozenset(' \t#@')
WARM_CELLS = ('1 + 1',)


class Kernel:
    """Runs cells. One per sandbox; it is created when the component is built, and set up by the first request."""

    def __init__(self, send: Callable[[str], str], places: dict[str, str] | None = None) -> None:
        self.places = places or {}  # path inside -> path in this process
        self.bridge = Bridge(send)
        self.selector = HostSelector(self.bridge)
        self.main = types.ModuleType('__main__')
        self.namespace: state.Values = self.main.__dict__
        self.tools: dict[str, HostTool] = {}
        self.tools_by_name = Tools(self.tools)
        self.stdout = HostStream(self.bridge, 'o', '<stdout>')
        self.stderr = HostStream(self.bridge, 'e', '<stderr>')
        self.code_rules: CodeRules | None = None
        self.loop: Any = None
        self.displays: list[Json] = []
        self.cells = 0
        self.has_files = False
        self.has_network = False
        self.write_advice = ''
        self.reserve: bytearray | None = bytearray(1 << 19)  # freed when memory runs out, to report it
        self.quick: state.Values | None = None  # the values that were last sent with an answer
        self.unchanged = False  # whether the cell cannot have changed the variables
        self._initial = frozenset(self.namespace)

    def install(self) -> None:
        """Replace the main module, streams, sleep, input and event loop of the interpreter."""
        self.namespace.update(__builtins__=builtins, display=self.display)
        self._initial = frozenset(self.namespace)
        sys.modules['__main__'] = self.main
        sys.stdout, sys.stderr = self.stdout, self.stderr
        sys.argv = ['']
        builtins.input = self.input  # type: ignore[assignment]
        _builtins.update({'ToolError': ToolError, 'exit': sys.exit, 'quit': sys.exit, 'tools': self.tools_by_name})
        _builtins[REPORT] = self.bridge.report_position
        warn_of_coroutines_of(lambda: f'{CELL_PREFIX}{self.cells}>')
        time.sleep = self.sleep  # type: ignore[assignment]
        select.select = network.sleeping_select(self.sleep)
        setattr(events, '_event_loop_policy', GuestPolicy(self.selector))  # noqa: B010 - a private attribute
        os._exit = _posix._exit = self.exit  # type: ignore[assignment]
        limit_digits(0)  # the time limit ends a conversion that takes too long
        optional_rules.install(lambda: self.code_rules, is_library_file)

    def reset(self) -> None:
        """Remove everything that cells have left."""
        for name in self._user_values():
            del self.namespace[name]
        for filename in [name for name in linecache.cache if name.startswith(CELL_PREFIX)]:
            del linecache.cache[filename]
        self.cells, self.quick, self.loop = 0, None, None

    def enter(self, message: str) -> str:
        """Handle a request. The answer is always one JSON text.

        A message that starts with `r` is a cell and nothing else, the most frequent request. With `d`, the answer
        also describes the variables. All others are JSON.
        """
        if message[:1] == 'r':
            return self._encode(self.run_cell(message[1:], None), 'state')
        if message[:1] == 'd':
            return self._encode(self._add_descriptions(self.run_cell(message[1:], None)), 'state')
        request: Any = parse_with(message, 'state')
        if 'setup' in request:
            self.set_up(request['setup'])
        operation = request['op']
        return self._encode(_HANDLERS[operation](self, request), 'state' if operation in _SAVING else None)

    def _encode(self, answer: Answer, long: str | None) -> str:
        try:
            return dump(answer) if long is None else encode_answer(answer, long)
        except MemoryError as error:  # there was memory for the value, not for its encoding
            self.reserve = None
            return dump({'error': describe(error, 'memory')})

    def set_up(self, setup: Setup) -> None:
        """Prepare a new sandbox for its first cell: random seed, tools, paths, variables."""
        random.seed()
        sys.argv = ['']
        if 'env' in setup:  # the interpreter may have started long before this sandbox
            os.environ.update(setup['env'])
        paths = setup.get('paths', [])
        sys.path += [self.places.get(path, path) for path in paths]
        if sys.platform != 'wasi':
            offer_python([self.places.get(path, path) for path in paths if path != setup.get('cwd')])
        self._offer(setup.get('tools', []))
        self.write_advice = setup.get('write_advice', '')
        if setup.get('network'):
            self.has_network = True
            network.install(self.bridge.network)
        if 'cwd' in setup:
            self.has_files = True
            cwd = setup['cwd']
            os.chdir(self.places.get(cwd, cwd))
        self._set(setup.get('variables', {}))

    # The requests -----------------------------------------------------------------------------------------------------

    def run(self, request: Request) -> Answer:
        """Run one cell, as a request with more than code."""
        rules = request.get('code_rules')
        answer = self.run_cell(request['code'], None if rules is None else CodeRules.from_json(rules))
        return self._add_descriptions(answer) if request.get('describe') else answer

    def run_cell(self, code: str, rules: CodeRules | None) -> Answer:
        """Run one cell."""
        self.cells += 1
        self.code_rules = rules
        self.displays = []
        self.unchanged = False
        stdout, stderr = self.stdout, self.stderr
        sys.stdout, sys.stderr = stdout, stderr  # a cell may have replaced them
        stdout.writes = stderr.writes = 0
        answer: Answer = {}
        try:
            self._execute(code, f'{CELL_PREFIX}{self.cells}>', answer)
        except Broken:
            raise
        except BaseException as error:
            answer['error'] = self._explain(error)
        self.selector.end_calls()
        if stdout.pending or stderr.pending:
            ended = stdout.finish() or stderr.finish()
            if ended and answer.get('error') is None:
                answer['error'] = describe(ended, ended.kind)
        if displays := [*self.displays, *new_figures()]:
            answer['displays'] = displays
        if not self.unchanged:
            self._save_if_quick(answer)
        return answer

    def warm(self, request: Request) -> Answer:
        """Run harmless cells, so that the memory of a first cell is loaded."""
        for code in WARM_CELLS:
            self.run_cell(code, None)
        self.reset()
        return {}

    def save(self, request: Request) -> Answer:
        """All variables, as text that the host stores without reading it."""
        data, lost = state.save(self._user_values(), self.namespace, self._shared_objects())
        self.quick = None
        return {'state': data.decode('latin-1'), 'python': _PYTHON, 'lost': [*lost]}

    def load(self, request: Request) -> Answer:
        """Restore variables that `save` returned, in this sandbox or another."""
        if request['python'] != _PYTHON:
            return {'problem': f'the snapshot was made by {request["python"]}, this sandbox runs {_PYTHON}'}
        try:
            state.load(request['state'].encode('latin-1'), self.namespace, self._shared_objects())
            keep_figures()
        except Exception as error:
            return {'problem': f'the snapshot cannot be restored here: {type(error).__name__}: {error}'}
        self.cells = request.get('cells', 0)
        return {}

    def get_variables(self, request: Request) -> Answer:
        """The values of some variables, or of all that are plain data."""
        wanted = request['names']
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
        leave_out_large(values, missing)
        return {'values': values, 'missing': missing}

    def set_variables(self, request: Request) -> Answer:
        """Set variables from the host."""
        self._set(request['values'])
        return {}

    def _set(self, variables: dict[str, Json]) -> None:
        self.namespace.update({name: unpack(value) for name, value in variables.items()})

    def use_tools(self, request: Request) -> Answer:
        """Replace the tools."""
        for name in self.tools:
            _builtins.pop(name, None)
        self.tools.clear()
        self._offer(request['tools'])
        return {}

    def names(self, request: Request) -> Answer:
        """The variables, each with its type and size."""
        return descriptions(self._user_values())

    def _add_descriptions(self, answer: Answer) -> Answer:
        """Describe the variables in the answer, unless code of the user would run for it; then the host asks later."""
        try:
            values = self._user_values()
            if all(type(value) in PLAIN for value in values.values()):
                answer['names'] = descriptions(values)
        except MemoryError:  # the cell itself succeeded
            answer.pop('names', None)
        return answer

    def _offer(self, descriptions: list[ToolDescription]) -> None:
        """Make tools builtins: a variable of the same name hides a tool for as long as there is the variable."""
        for description in descriptions:
            tool = make_tool(self.bridge, self.selector, description)
            _builtins[tool.__name__] = self.tools[tool.__name__] = tool

    # One cell ---------------------------------------------------------------------------------------------------------

    def _execute(self, code: str, filename: str, answer: Answer) -> None:
        try:
            remember_source(filename, code)
            expression = self._compile_expression(code, filename)
            compiled = expression or self._compile_statements(code, filename)
        except _COMPILE_ERRORS:
            raise
        except BaseException as error:
            raise Broken(filename) from error
        # Where all variables are plain values, an expression without a call can change none of them.
        self.unchanged = expression is not None and '(' not in code and self.quick is not None
        if compiled.co_flags & _COROUTINE:
            self._run_coroutine(types.FunctionType(compiled, self.namespace)())
        else:
            value = _eval(compiled, self.namespace)
            if value is not None:
                self._answer_value(value, answer)
        if _VALUE in self.namespace:
            self._answer_value(self.namespace.pop(_VALUE), answer)

    def _compile_expression(self, code: str, filename: str) -> types.CodeType | None:
        """Compile a single expression without building a tree, which halves the time of the smallest cells."""
        if (
            self.code_rules is not None
            or code[:1] in _NO_EXPRESSION_START
            or '\n' in code
            or '=' in code
            or 'await' in code
        ):
            return None
        try:
            return _compile(code, filename, 'eval', dont_inherit=True)
        except SyntaxError:
            return None

    def _compile_statements(self, code: str, filename: str) -> types.CodeType:
        """Compile statements; the value of a last expression is assigned to a name that no cell can use."""
        tree = _parse_tree(code, filename)
        if self.code_rules is not None:
            check(tree, self.code_rules)
        if self.tools and mentions_tool(code, self.tools):
            reserved = {name for name, tool in self.tools.items() if tool.is_reserved}
            refuse_tool_names(tree, code, filename, self.tools, reserved)
        report_positions(tree, code)
        if tree.body and _isinstance(last := tree.body[-1], ast.Expr):
            place = {name: getattr(last, name) for name in ('lineno', 'col_offset', 'end_lineno', 'end_col_offset')}
            tree.body[-1] = ast.Assign([ast.Name(_VALUE, _STORE, **place)], last.value, **place)
        return _compile(tree, filename, 'exec', _AWAIT, dont_inherit=True)  # not the `annotations` of this module

    def _run_coroutine(self, coroutine: Coroutine[object, object, object]) -> None:
        try:
            if self.loop is None or self.loop.is_closed():
                self.loop = new_loop(self.selector)
            loop = self.loop
        except BaseException as error:
            raise Broken('asyncio') from error
        try:
            loop.run_until_complete(coroutine)
        finally:
            loop.rest()

    def _answer_value(self, value: object, answer: Answer) -> None:
        if value is None:
            return
        if type(value) is int and -_INT64 < value < _INT64:  # the most frequent case
            answer['value'] = value
            answer['text'] = repr(value)
            return
        try:
            answer['value'] = pack(value)
            whole = True
        except NotPlain as error:
            whole = not isinstance(error, TooLarge)
        answer['text'] = text_of(value, whole)
        self.displays.extend(displays_of(value))

    def _explain(self, error: BaseException) -> Json:
        """The error as data. `exit()` ends the cell; only an exit code other than zero is an error."""
        if isinstance(error, MemoryError):
            self.reserve = None
        try:
            if isinstance(error, SystemExit):
                return None if error.code in (None, 0) else describe(error, 'exit')
            return describe(error, kind_of(error), self._advice(error))
        except BaseException as second:  # an error whose own methods raise
            return {
                'kind': kind_of(error),
                'type': type(error).__name__,
                'message': f'(the error could not be shown: {type(second).__name__})',
                'traceback': '',
                'line': None,
            }

    def _advice(self, error: BaseException) -> str:
        if isinstance(error, KeyError):
            return existing_keys(error)
        if not isinstance(error, OSError):
            return ''
        return advice_for(error, files=self.has_files, network=self.has_network, write_advice=self.write_advice)

    def _save_if_quick(self, answer: Answer) -> None:
        """Send the variables with the answer if they are small; else the host asks for them later."""
        self.namespace.pop(_VALUE, None)
        values = self._user_values()
        if self.quick is not None and state.same(values, self.quick):
            return
        data = state.quick_save(values)
        if data is None:
            self.quick = None
            answer['unsaved'] = True
        else:
            self.quick = values
            answer['state'] = data.decode('latin-1')
            answer['python'] = _PYTHON

    def _user_values(self) -> state.Values:
        values = {name: value for name, value in self.namespace.items() if name not in self._initial}
        for name in _HIDDEN & values.keys():
            del values[name]
        return values

    def _shared_objects(self) -> state.Values:
        """Objects that every sandbox has; references to them are saved by name."""
        own = {' kernel': self, ' stdout': self.stdout, ' stderr': self.stderr, ' tools': self.tools_by_name}
        return {**self.tools, **own}

    # What cells may call ----------------------------------------------------------------------------------------------

    def display(self, *values: object) -> None:
        """Show values as HTML, an image, … if they have such a form, else as text."""
        for value in values:
            shown = displays_of(value)
            self.displays.extend(shown or [['text/plain', text_of(value, True)]])

    def input(self, prompt: object = '', /) -> str:
        """Ask the host for a line of text."""
        self.stdout.flush()
        return self.bridge.input(str(prompt))

    def exit(self, status: int, /) -> None:
        """`os._exit`. WASI knows only success and failure, so the host is told the exit code first."""
        self.bridge.send(f'x{int(status) & 255}')
        _exit(status)

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


_HANDLERS: dict[str, Callable[[Kernel, Request], Answer]] = {
    'run': Kernel.run,
    'warm': Kernel.warm,
    'save': Kernel.save,
    'load': Kernel.load,
    'get': Kernel.get_variables,
    'set': Kernel.set_variables,
    'tools': Kernel.use_tools,
    'names': Kernel.names,
    'work': lambda kernel, request: do_work(request['work']),
}
_SAVING = frozenset({'run', 'save'})
"""Requests whose answers may contain the variables."""
