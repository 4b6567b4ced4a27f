"""What the model is told: the files of `prompts/`, put together for one run."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import PurePath

from habilis.agent.context.output import as_text
from habilis.agent.context.truncation import Bounds, truncate
from habilis.core.narrowing import is_dict, items_in
from habilis.models.contract import Function, Message
from habilis.sandbox.options import SandboxSettings

MAX_LISTED = 12
"""Maximum number of variables or files listed by name."""

MAX_SKILLS = 50
"""Maximum number of skills listed with their descriptions."""

MAX_SKILLS_LENGTH = 8000
"""About the maximum number of characters of all descriptions: with many skills, each has fewer."""

MAX_DESCRIPTION = 500
MIN_DESCRIPTION = 100
MEMORY_HEADING = 'From the memory:'

STANDARD_LIBRARY = 'Only the standard library is there, no network, no input().'

PYTHON = Function(
    name='python',
    description='Run Python in the sandbox and see what it prints. Variables stay.',
    parameters={
        'type': 'object',
        'properties': {'code': {'type': 'string', 'description': 'Python code'}},
        'required': ['code'],
        'additionalProperties': False,
    },
)
"""The function that carries code, for models that call functions."""

CALL_TOOL = Function(
    name='call_tool',
    description='Call a tool that search_tools has found.',
    parameters={
        'type': 'object',
        'properties': {'name': {'type': 'string'}, 'arguments': {'type': 'object'}},
        'required': ['name', 'arguments'],
    },
)
"""The function that carries a call of a tool that the request does not describe."""


def first_use_message(stubs: Sequence[str]) -> str:
    """The tools that code called without having been shown them."""
    listed = '\n\n'.join(stubs)
    return f'Tools that were called for the first time:\n```python\n{listed}\n```' if stubs else ''


@cache
def prompt_file(name: str) -> str:
    """The text of one file of `prompts/`."""
    return files('habilis.agent.context').joinpath('prompts', f'{name}.md').read_text(encoding='utf-8').strip()


@dataclass(frozen=True, kw_only=True)
class PromptParts:
    """What a system prompt is made of."""

    functions: bool
    """Code travels as a function call, not in fences."""

    python: bool = True
    stubs: str = ''
    model_tools: Sequence[Function] = ()
    """Named here only where the model has no function calls of its own."""

    skills: Mapping[str, str] = field(default_factory=dict[str, str])
    """Descriptions by name."""

    has_script_runner: bool = False
    """Whether `run_script` is defined for code."""

    more_toolsets: Sequence[str] = ()
    """Toolsets whose tools are found by a search, a line each."""

    output: str | None = None
    """The type the answer must have, in words."""

    packages: str = STANDARD_LIBRARY
    imports: Sequence[str] = ()
    """Names that code finds imported."""

    instructions: str = ''
    can_stop: bool = True
    talk: bool = False
    """The task is what a person said in a conversation."""

    text: Callable[[str], str] = prompt_file
    """Finds a prompt by its name: the policy may have its own."""

    def without_stop(self) -> 'PromptParts':
        """The same for a step in which there is no `final_answer`."""
        return replace(self, can_stop=False, output=None, talk=False)


def packages_rule(settings: SandboxSettings, *, files: bool) -> str:
    """What code may import and reach, in one line."""
    packages = settings.get('packages') or ()
    given = [packages] if isinstance(packages, str) else [str(package) for package in packages]
    names = [PurePath(name).name for name in given]  # the folders of the host mean nothing to the model
    network = settings.get('network') or False
    has = f'The standard library and {", ".join(names)} are there' if names else 'Only the standard library is there'
    hosts = '' if isinstance(network, bool) else f' to {", ".join(network)}'
    reach = f'network access{hosts}' if network else 'no network'
    return f'{has}, {reach}, {"" if files else "no files, "}no input().'


def system_prompt(parts: PromptParts) -> str:
    """The system message: the same bytes for the same parts, so that a provider can keep it evaluated."""
    form = 'call' if parts.functions else 'fence'
    form += '_talk' if parts.talk else '' if parts.can_stop else '_open'
    sections: list[str] = []
    if parts.python and parts.stubs:
        sections.append(
            f'Tools: these functions are already defined for your code; call them, do not define or import them.\n'
            f'```python\n{parts.stubs}\n```'
        )
    if parts.model_tools and not parts.functions:
        instead = ' instead of writing code' if parts.python else ''
        sections.append(f'Functions you may call{instead}{_written_calls(parts.model_tools)}')
    if parts.skills:
        sections.append(_skills_section(parts))
    if parts.more_toolsets:
        listed = '\n'.join(parts.more_toolsets)
        sections.append(f'{parts.text("more_tools" if parts.python else "more_functions")}\n{listed}')
    if parts.output is not None:
        what = 'The value given to final_answer' if parts.python else 'Your answer'
        sections.append(f'{what} must be {parts.output}.')
    if parts.instructions:
        sections.append(parts.instructions)
    body = '\n\n'.join(sections)
    if not parts.python:
        return f'{parts.text("no_python")}\n\n{body}'.strip()
    text = parts.text('system_talk' if parts.talk else 'system')
    for name, value in (
        ('protocol', parts.text(f'protocol_{form}')),
        ('example', parts.text(f'example_{form}')),
        ('packages', f'{parts.packages}{_already_imported(parts.imports)}'),
        ('sections', f'\n{body}' if body else ''),
    ):
        text = text.replace(f'{{{name}}}', value)
    return text.strip()


def _skills_section(parts: PromptParts) -> str:
    """Names and descriptions, within bounds. Their authors are not trusted: each is one line, and no fence."""
    listed = list(parts.skills.items())[:MAX_SKILLS]
    length = max(MIN_DESCRIPTION, min(MAX_DESCRIPTION, MAX_SKILLS_LENGTH // len(listed)))
    lines = [f'- {name}: {_shortened(text.replace("```", "`"), length)}' for name, text in listed]
    if more := len(parts.skills) - len(listed):
        lines.append(f"- and {more} more: os.listdir('/skills')")
    scripts = f' {parts.text("skill_scripts")}' if parts.has_script_runner else ''
    return f'{parts.text("skills")}{scripts}\n' + '\n'.join(lines)


def _already_imported(names: Sequence[str]) -> str:
    return f' Already imported: {", ".join(names)}.' if names else ''


def _written_calls(functions: Sequence[Function]) -> str:
    lines = [
        f'- {function.name}: {function.description} {json.dumps(dict(function.parameters))}' for function in functions
    ]
    listed = '\n'.join(lines)
    return f', by replying <tool_call>{{"name": "...", "arguments": {{...}}}}</tool_call>:\n{listed}'


def as_sent(message: Message) -> Message:
    """The message as it is sent, with all its parts as text."""
    memory = f'{MEMORY_HEADING}\n{message.memory}' if message.memory else ''
    added = [part for part in (message.situation, message.note, memory) if part]
    if not added:
        return message
    return replace(message, text='\n\n'.join([message.text, *added]), situation='', note='', memory='')


def task_message(
    task: str,
    variables: Sequence[str] = (),
    *,
    gone: Sequence[str] | None = (),
    files: Sequence[str] = (),
) -> str:
    """The words of the user, the files and variables that code finds, and variables that it does not find any more.

    `gone` is None if all are gone and their names are not known.
    """
    text = task.strip()
    if variables:
        listed = '\n'.join(f'- {variable}' for variable in variables)
        text += f'\n\nThese variables are already defined, with all their data; do not assign them again:\n{listed}'
    if files:
        listed = '\n'.join(f'- {file}' for file in files)
        text += f'\n\nFiles that your code can open:\n{listed}'
    if gone is None:
        text += '\n\nThe variables of earlier turns are gone.'
    elif gone:
        text += f'\n\nThese variables of earlier turns are gone: {listed_names(gone)}.'
    return text


def listed_names(names: Sequence[str]) -> str:
    """Names in one line, the first of many."""
    more = len(names) - MAX_LISTED
    return ', '.join(names[:MAX_LISTED]) + (f' and {more} more' if more > 0 else '')


def preview(name: str, value: object, length: int = 80) -> str:
    """The start of a value and, for text, how to read it: for the list of variables."""
    if isinstance(value, str) and '\n' in value.strip():
        first, *rest = value.strip().split('\n')
        start = _shortened(repr(first), length)
        return f'text of {len(rest) + 1} lines, the first is {start}. Read it with: {_reader(name, first, rest)}'
    items = items_in(value)
    if items and is_dict(items[0]):
        return f'each such as {_shortened(as_text(items[0], repr), 2 * length)}'
    return _shortened(as_text(value, repr), length)


def _reader(name: str, first: str, rest: Sequence[str]) -> str:
    """Code that reads a text, by its form."""
    if first[:1] in ('{', '['):
        return f'import json; data = json.loads({name})'
    for delimiter, option in ((',', ''), (';', ", delimiter=';'"), ('\t', ", delimiter='\\t'")):
        columns = first.count(delimiter)
        if columns and all(line.count(delimiter) >= columns for line in rest):
            return f'import csv, io; rows = list(csv.DictReader(io.StringIO({name}){option}))'
    return f'lines = {name}.splitlines()'


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f'{text[:length]}…'


def step_tools_message(stubs: str, calls: Sequence[Function]) -> str:
    """Tools that are there for one step: those for the code, and those that the model has to call in writing."""
    pieces: list[str] = []
    if stubs:
        pieces.append(f'For this step only, these functions are defined for your code too:\n```python\n{stubs}\n```')
    if calls:
        pieces.append(f'Functions you may call in this step only{_written_calls(calls)}')
    return '\n\n'.join(pieces)


def changed_tools_message(
    stubs: str, calls: Sequence[Function], *, gone: Sequence[str], more: Sequence[str] = (), functions: bool
) -> str:
    """Tools that were enabled or disabled since the last step. `functions`: the request itself offers the calls."""
    pieces: list[str] = []
    if stubs:
        pieces.append(f'From now on, these functions are defined for your code too:\n```python\n{stubs}\n```')
    if calls and functions:
        pieces.append(f'Functions you may call from now on: {", ".join(function.name for function in calls)}.')
    elif calls:
        pieces.append(f'Functions you may call from now on{_written_calls(calls)}')
    if more:
        pieces.append('\n'.join(['From now on, search_tools finds the tools of these toolsets:', *more]))
    if gone:
        pieces.append(f'These functions are no longer available, do not call them: {", ".join(gone)}.')
    return '\n\n'.join(pieces)


def answer_refused(why: str) -> str:
    """What the model is told about an answer that an output validator refused."""
    return f'The answer was not accepted: {why}\nCorrect it, and give the answer again.'


def artifacts_message(artifacts: Mapping[str, str], bounds: Bounds, *, code: bool = True) -> str:
    """Documents given to one step: their names and texts, the long ones in part; `code` has them whole."""
    pieces = [f'Documents for this step.{" In code they are in the dict `artifacts`, by name." if code else ""}']
    for name, text in artifacts.items():
        shown = truncate(text, bounds, where=f'the whole is in artifacts[{name!r}]' if code else '').text
        pieces.append(f'<document name={name!r}>\n{shown}\n</document>')
    return '\n\n'.join(pieces)
