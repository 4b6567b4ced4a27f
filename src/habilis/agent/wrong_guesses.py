"""Answers to names that people know from other libraries: which name it is here."""

from collections.abc import Iterable, Mapping
from dataclasses import fields

from habilis.agent.contract import RunLimits
from habilis.core.similar_names import similar_names
from habilis.models.registry import Overrides as ModelSettings

_INSTRUCTIONS = 'pass instructions=…'
_OUTPUT = 'pass output_type=…'
_SUBAGENTS = 'pass the other agents in tools=[…]'
_HOOKS = 'pass hooks=[…]'
_STEPS = 'pass max_steps=… to run(…), or limits=RunLimits(steps=…)'
_FILES = "pass them with the task: run(['…', Image('a.png')])"
_SHOWN = 'pass hooks=[TerminalView()], from habilis.agent.hooks'

_OPTIONS: Mapping[str, str] = {
    'system_prompt': _INSTRUCTIONS,
    'system': _INSTRUCTIONS,
    'prompt': _INSTRUCTIONS,
    'role': _INSTRUCTIONS,
    'output': _OUTPUT,
    'result_type': _OUTPUT,
    'response_format': _OUTPUT,
    'response_model': _OUTPUT,
    'output_schema': _OUTPUT,
    'handoffs': _SUBAGENTS,
    'agents': _SUBAGENTS,
    'managed_agents': _SUBAGENTS,
    'subagents': 'pass helpers={…}, or the other agents in tools=[…]',
    'toolsets': 'pass them in tools=[…]',
    'functions': 'pass them in tools=[…]',
    'images': _FILES,
    'files': _FILES,
    'attachments': _FILES,
    'callbacks': _HOOKS,
    'step_callbacks': _HOOKS,
    'event_stream_handler': _HOOKS,
    'guardrails': 'pass gates=[…] for tool calls, output_validators=[…] for answers',
    'input_guardrails': 'pass gates=[…]',
    'output_guardrails': 'pass output_validators=[…]',
    'usage_limits': 'pass limits=RunLimits(…)',
    'max_turns': _STEPS,
    'max_iterations': _STEPS,
    'message_history': 'pass history=…',
    'messages': 'pass history=…',
    'context': 'pass deps=… to run(…)',
    'memory': 'pass session=… to run(…) to continue a conversation; `habilis.assistant.Session` keeps facts too',
    'session_id': 'pass session=…',
    'thread_id': 'pass session=…',
    'executor': 'pass sandbox=…',
    'executor_type': 'pass sandbox=…',
    'code_execution': 'pass python=False to let the model only call functions',
    'additional_authorized_imports': 'pass packages=[…] to install, code_rules=CodeRules(imports=…) to restrict',
    'authorized_imports': 'pass packages=[…] to install, code_rules=CodeRules(imports=…) to restrict',
    'requirements': 'pass packages=[…]',
    'allowed_hosts': 'pass network=[…]',
    'working_directory': 'pass workspace=…',
    'cwd': 'pass workspace=…',
    'verbose': _SHOWN,
    'verbosity_level': _SHOWN,
    'id': 'pass run_id=… to run(…)',
    'tool_name': 'pass name=…',
    'tool_description': 'pass description=…',
}
"""What to pass instead, by the name that people know."""

_TASKS = frozenset({'user_prompt', 'prompt', 'input', 'query', 'question', 'message'})
"""What the task of a run is called elsewhere."""


def check_names(where: str, given: Iterable[str], known: Iterable[str], elsewhere: Mapping[str, Iterable[str]]) -> None:
    """Refuse an unknown keyword with the right name: a mistyped limit would be no limit.

    `elsewhere` are the keywords of other calls that it may be meant for.
    """
    known = list(known)
    for name in given:
        if name not in known:
            msg = f'{where} has no option {name!r}{_hint(name, known, elsewhere)}'
            raise TypeError(msg)


def _hint(name: str, known: list[str], elsewhere: Mapping[str, Iterable[str]]) -> str:
    if (home := next((other for other, names in elsewhere.items() if name in names), None)) is not None:
        return f': it is an option of {home}'
    if name in _TASKS and 'history' in known:
        return ': the task comes first, without a name: run(task)'
    if name in _OPTIONS:
        return f': {_OPTIONS[name]}'
    if name in ModelSettings.__annotations__:
        return f": pass Agent(model_settings={{'{name}': …}})"
    if (limit := name.removeprefix('max_')) in {item.name for item in fields(RunLimits)}:
        return f': pass limits=RunLimits({limit}=…)'
    if near := similar_names(name, known, n=1, cutoff=0.5):
        return f'; did you mean {near[0]!r}?'
    return f'; it has {", ".join(known)}'
