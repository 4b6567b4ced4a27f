"""Invented tools of many services, always the same: 40 toolsets of 25 tools, as servers of these domains offer them."""

from collections.abc import Iterator
from pathlib import Path

from habilis.tools import Tool, Toolset
from habilis.tools.contract import ToolOptions

SERVICES = Path(__file__).with_name('services.txt').read_text(encoding='utf-8').splitlines()
"""A line per service, with its resources: what they are, and the fields that are set in one."""

VERBS = {
    'list': 'List or search {what}, newest first.',
    'get': 'Get one of the {what}, by its id or key.',
    'create': 'Create a new {name}: {what}.',
    'update': 'Change some fields of a {name}: {what}. Fields that are not given stay as they are.',
    'delete': 'Delete or cancel a {name} ({what}). This cannot be undone.',
}
CAMEL_CASE = frozenset({'crm', 'maps', 'cloud', 'support', 'video'})
"""Services whose names are written like `crmCreateDeal`."""


def toolsets(count: int) -> list[Toolset]:
    """So many tools, those of the first services."""
    made = list[Toolset]()
    for line in SERVICES:
        tools = list(_tools(line))[: max(0, count)]
        made += [Toolset(line.partition(':')[0], tools)] if tools else []
        count -= len(tools)
    return made


def same_name(one: str, other: str) -> bool:
    """Whether two names are the same, however they are written."""
    return one.replace('_', '').lower() == other.replace('_', '').lower()


def _tools(line: str) -> Iterator[Tool[..., object]]:
    service, _, resources = line.partition(':')
    for resource in resources.split(';'):
        name, _, rest = resource.strip().partition('=')
        what, _, fields = rest.partition('|')
        for verb, text in VERBS.items():
            yield _tool(service, verb, name, text.format(name=name.replace('_', ' '), what=what), fields.split())


def _tool(service: str, verb: str, resource: str, text: str, fields: list[str]) -> Tool[..., object]:
    name = f'{service}_{verb}_{resource}{"s" if verb == "list" and not resource.endswith(("s", "y")) else ""}'
    if service in CAMEL_CASE:
        first, *others = name.split('_')
        name = first + ''.join(word.capitalize() for word in others)
    parameters = {
        'list': f"query: str = '', {''.join(f'{field}: str | None = None, ' for field in fields)}limit: int = 20",
        'get': f'{resource}_id: str, expand: list[str] | None = None',
        'create': ', '.join(f'{field}: str' for field in fields),
        'update': ', '.join([f'{resource}_id: str', *(f'{field}: str | None = None' for field in fields)]),
        'delete': f'{resource}_id: str, force: bool = False',
    }[verb]
    result = {'list': 'list[dict[str, str]]', 'delete': 'None'}.get(verb, 'dict[str, str]')
    made: dict[str, object] = {}
    exec(f'def {name}({parameters}) -> {result}:\n    {text!r}\n    return {name!r}, locals()', made)
    function = made[name]
    assert callable(function)
    reads = verb in {'list', 'get'}
    return Tool(function, options=ToolOptions(read_only=reads, destructive=verb == 'delete'))
