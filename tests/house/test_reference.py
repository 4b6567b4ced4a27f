"""The tables of the reference name all that the code has, and nothing else."""

import inspect
import re
from dataclasses import fields
from typing import get_args

import pytest
from typer import Typer

from habilis import flows
from habilis.agent.contract import Ended, Result, RunLimits, Step
from habilis.agent.events import AgentEvent, Event
from habilis.agent.options import AGENT_OPTIONS
from habilis.agent.run_spec import RUN_OPTIONS
from habilis.cli.commands import COMMANDS
from habilis.cli.memory.command import app as memory_app
from habilis.cli.run import report
from habilis.cli.runs.command import app as runs_app
from habilis.cli.sessions.command import app as sessions_app
from habilis.cli.tasks.command import app as tasks_app
from habilis.cli.tools.command import app as tools_app
from habilis.core import errors
from habilis.flows.contract import FlowError, Job, Outcome, State, StepOptions, StepStatus
from habilis.journal.contract import Kind, Lease, Record, RunInfo, Status, Store
from habilis.memory import Fact, Hit, Memory, Task, Turn
from habilis.models.config import ModelConfig
from habilis.models.discovery import DEFAULTS
from habilis.models.providers import PROVIDERS, Provider
from habilis.models.registry import OTHER_PROVIDERS
from habilis.sandbox.contract import ToolCall
from habilis.tools.contract import ToolOptions
from tests.cases import each_case
from tests.house.repository import ROOT

REFERENCE = ROOT / 'docs' / 'reference'


def rows(page: str, heading: str, *, table: int = 1) -> list[list[str]]:
    """The cells of a table below a heading, without the head of the table."""
    text = (REFERENCE / page).read_text(encoding='utf-8')
    section = re.split(r'^## ', text.partition(f'\n## {heading}\n')[2], maxsplit=1, flags=re.MULTILINE)[0]
    tables = re.findall(r'(?:^\|.*\n)+', section, re.MULTILINE)
    lines = tables[table - 1].splitlines()[2:]
    return [[cell.strip() for cell in re.split(r'(?<!\\)\|', line)[1:-1]] for line in lines]


def names(page: str, heading: str, *, table: int = 1) -> list[str]:
    """All names in the first column."""
    return [name for row in rows(page, heading, table=table) for name in re.findall(r'`(\w[\w-]*)', row[0])]


def test_every_kind_of_event_is_listed_with_its_class_and_its_fields() -> None:
    own = len(fields(Event))
    assert [row[:3] for row in rows('events.md', 'Every kind')] == [
        [f'`{event.kind}`', f'`{event.__name__}`', ', '.join(f'`{field.name}`' for field in fields(event)[own:]) or '–']
        for event in get_args(AgentEvent)
    ]


def test_every_field_that_all_events_have_is_listed() -> None:
    text = (REFERENCE / 'events.md').read_text(encoding='utf-8')
    head = text.partition('## Every kind')[0]
    assert re.findall(r'^\| `(\w+)`', head, re.MULTILINE) == ['kind', *(field.name for field in fields(Event)), 'text']


def provider_row(provider: Provider) -> list[str]:
    """What the page should say of a provider."""
    return [
        f'`{provider.name}`',
        ' or '.join(f'`{key}`' for key in provider.keys),
        ', '.join(f'`{variable}`' for variable in provider.urls) or '–',
        f'`{provider.install}`' if provider.install else '–',
        'as the server says' if provider.own_server else 'a function call',
        f'{provider.context_tokens:,}',
    ]


def test_the_table_of_providers_says_what_the_code_says() -> None:
    listed = {row[0].strip('`'): row for row in rows('models.md', 'Providers')}
    assert {name: row for name, row in listed.items() if name in PROVIDERS} == {
        name: provider_row(provider) for name, provider in PROVIDERS.items()
    }
    assert sorted(listed.keys() - PROVIDERS.keys()) == sorted(OTHER_PROVIDERS)


def test_every_provider_that_is_found_by_its_key_is_in_the_settings() -> None:
    assert sorted(names('settings.md', 'Keys')) == sorted(DEFAULTS)


def test_the_tree_of_model_errors_says_what_is_retried() -> None:
    listed = {row[0].strip('`'): row[2] for row in rows('models.md', 'Errors')}
    known = {
        name: 'yes' if kind.retryable else 'no'
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, errors.ModelError)
    }
    assert listed == known


def test_every_error_of_tools_is_listed() -> None:
    known = {name for name in vars(errors) if name.startswith('Tool')}
    assert set(names('tools.md', 'Errors')) == known | {'NeedsAnswer'}


def test_every_end_of_a_run_is_listed() -> None:
    assert names('agent.md', 'Ended') == list(get_args(Ended))


@each_case(
    ('page', 'heading', 'kind'),
    [
        ('agent.md', 'RunLimits', RunLimits),
        ('agent.md', 'Step', Step),
        ('models.md', 'ModelConfig', ModelConfig),
        ('sandbox.md', 'ToolCall', ToolCall),
        ('journal.md', 'Record', Record),
        ('journal.md', 'RunInfo', RunInfo),
        ('journal.md', 'Lease', Lease),
        ('memory.md', 'Turn', Turn),
        ('memory.md', 'Fact', Fact),
        ('memory.md', 'Task', Task),
        ('memory.md', 'Hit', Hit),
        ('flows.md', 'step', StepOptions),
        ('flows.md', 'Status', StepStatus),
    ],
)
def test_every_field_is_listed(page: str, heading: str, kind: type) -> None:
    known = {field.name for field in fields(kind)}
    listed = {name for row in rows(page, heading) for name in re.findall(r'`(\w+)`', row[0])}
    assert listed == known


def test_every_field_of_a_result_is_listed() -> None:
    listed = {name for row in rows('agent.md', 'Result') for name in re.findall(r'`(\w+)`', row[0])}
    assert listed == {field.name for field in fields(Result)} | {'cost'}


def test_every_option_of_a_tool_is_listed() -> None:
    assert names('tools.md', 'tool') == ['name', *(field.name for field in fields(ToolOptions))]


def test_every_argument_of_an_agent_is_listed() -> None:
    assert names('agent.md', 'Agent') == [*AGENT_OPTIONS]


def test_every_argument_of_a_run_is_listed() -> None:
    listed = {name for row in rows('agent.md', 'Agent', table=3) for name in re.findall(r'`(\w+)`', row[0])}
    assert listed == set(RUN_OPTIONS)


def test_the_exit_codes_are_those_of_the_command() -> None:
    codes = [row[0] for row in rows('command.md', 'habilis run', table=2)]
    used = (report.ANSWERED, report.FAILED, report.WRONG_USAGE, report.LIMIT_REACHED, report.QUESTION, 130)
    assert codes == [str(code) for code in used]


def test_every_command_is_listed() -> None:
    text = (REFERENCE / 'command.md').read_text(encoding='utf-8')
    listed = re.findall(r'^\| `habilis (\w+)', text, re.MULTILINE)
    assert set(listed) == set(COMMANDS)


def test_every_public_name_of_flows_is_listed() -> None:
    assert sorted(names('flows.md', 'Names')) == sorted(flows.__all__)


@pytest.mark.parametrize(('table', 'kind'), [(3, Job), (4, Outcome)])
def test_every_field_of_what_engines_pass_is_listed(table: int, kind: type) -> None:
    assert names('flows.md', 'Engines', table=table) == [field.name for field in fields(kind)]


def test_every_state_of_a_step_is_listed() -> None:
    row = next(row for row in rows('flows.md', 'Status') if row[0] == '`state`')
    assert re.findall(r'`([a-z ]+)`', row[1]) == list(get_args(State))


def test_every_error_of_flows_is_listed() -> None:
    public = [
        name for name in flows.__all__ if inspect.isclass(kind := getattr(flows, name)) and issubclass(kind, FlowError)
    ]
    assert sorted(names('flows.md', 'Errors')) == sorted(public)


def test_every_method_of_a_store_is_listed() -> None:
    known = [name for name, method in vars(Store).items() if inspect.isfunction(method) and not name.startswith('_')]
    assert names('journal.md', 'Store') == known


@pytest.mark.parametrize(('heading', 'literal'), [('Kind', Kind), ('Status', Status)])
def test_every_word_of_the_journal_is_listed(heading: str, literal: object) -> None:
    assert names('journal.md', heading) == list(get_args(literal))


def test_every_error_of_the_journal_is_listed() -> None:
    known = [
        name for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, errors.JournalError)
    ]
    assert names('journal.md', 'Errors') == known


def test_every_command_for_runs_is_listed() -> None:
    listed = [re.findall(r'`habilis runs (\w+)', row[0]) for row in rows('command.md', 'habilis runs')]
    known = {command.name or command.callback.__name__ for command in runs_app.registered_commands if command.callback}
    assert sorted(name for names in listed for name in names) == sorted(known)


@pytest.mark.parametrize(
    ('group', 'app'), [('tools', tools_app), ('memory', memory_app), ('tasks', tasks_app), ('sessions', sessions_app)]
)
def test_every_command_of_a_group_is_listed(group: str, app: Typer) -> None:
    listed = [re.findall(rf'`habilis {group} (\w+)', row[0]) for row in rows('command.md', f'habilis {group}')]
    known = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    assert sorted(name for names in listed for name in names) == sorted(known)


def test_every_method_of_the_memory_is_listed() -> None:
    known = {name for name, method in vars(Memory).items() if inspect.isfunction(method) and not name.startswith('_')}
    assert set(names('memory.md', 'Memory')) == known - {'close'}
