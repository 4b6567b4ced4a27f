"""Which tools the model is told of, and keeping that in step with the tools that are enabled."""

import functools
import json
from collections.abc import Callable, Container, Iterable, Sequence

from habilis.agent.context.conversation import Conversation
from habilis.agent.context.prompt import PromptParts, changed_tools_message, system_prompt
from habilis.agent.loop.foundation import Foundation
from habilis.agent.loop.tool_calls import ToolCaller
from habilis.models.tokens import count_tokens
from habilis.tools import Tool, Toolset

LISTED_SHARE = 1 / 6
"""Share of the budget that is used for some of the tools if it is too small for all."""


def unlisted_tools(
    tools: Iterable[Tool[..., object] | Toolset], budget: int, *, python: bool, kept: Container[str] = ()
) -> frozenset[str]:
    """The names of the tools that the prompt does not describe: none, if all of them take no more tokens than this.

    Else those given by themselves are described in their order, then the smallest toolsets, as far as a share of the
    budget goes. Always described are those that are `kept`, and those for the files and the user of the run.
    """
    given = [one for one in tools if not (one.name in kept if isinstance(one, Tool) else _is_of_the_run(one))]
    measure = functools.partial(_measure, budget=budget, python=python)
    alone = [measure([tool]) for tool in given if isinstance(tool, Tool)]
    toolsets = [measure(one.tools) for one in given if isinstance(one, Toolset)]
    if sum(size for size, _ in (*alone, *toolsets)) <= budget:
        return frozenset()
    left, unlisted = budget * LISTED_SHARE, set[str]()
    for size, group in (*alone, *sorted(toolsets, key=lambda sized: sized[0])):
        if size <= left:
            left -= size
        else:
            unlisted.update(tool.name for tool in group)
    return frozenset(unlisted)


def _is_of_the_run(toolset: Toolset) -> bool:
    return toolset.needs_workspace or toolset.needs_processes or not toolset.for_subagents


def _measure(
    tools: Sequence[Tool[..., object]], *, budget: int, python: bool
) -> tuple[int, Sequence[Tool[..., object]]]:
    """Tokens of the descriptions of tools, and the tools. Counted only until it is known that they are too many."""
    tokens = 0
    for tool in tools:
        if python and tool.options.side != 'model':
            tokens += count_tokens(tool.stub)
        if not python or tool.options.side != 'code':
            tokens += count_tokens(f'{tool.name} {tool.description} {json.dumps(tool.parameters)}')
        if tokens > budget:
            break
    return tokens, tools


class OfferedTools:
    """The tools that the prompt of one run describes. The prompt changes only when they do."""

    def __init__(
        self, base: Foundation, tools: ToolCaller, *, conversation: Conversation, prompt: Callable[[], PromptParts]
    ) -> None:
        self._toolbox, self._policy, self._history = base.toolbox, base.policy, base.history
        self._tools = tools
        self._conversation = conversation
        self._prompt = prompt
        self._names, self._more = self._enabled(), self._toolbox.more_toolsets()
        self._parts = prompt()

    @property
    def system_without_stop(self) -> str:
        """The system prompt of a step that cannot end the run."""
        return system_prompt(self._parts.without_stop())

    def update(self, *, announce: bool) -> str:
        """Describe the tools that are enabled now. Returns what has changed, if the model is to be told."""
        self._toolbox.update()
        before, now = self._names, self._enabled()
        more_before, more = self._more, self._toolbox.more_toolsets()
        if (now, more) == (before, more_before):
            return ''
        self._names, self._more = now, more
        prompt = self._describe()
        self._history.tools = self._toolbox.signatures()
        if prompt.python:
            self._conversation.change_task_notes(
                note=self._policy.task_note(self._history, can_stop=True),
                note_without_stop=self._policy.task_note(self._history, can_stop=False),
            )
        if not announce:
            return ''
        new = [name for name in now if name not in before]
        return changed_tools_message(
            self._toolbox.stubs(new) if prompt.python else '',
            [function for function in self._tools.model_tools if function.name in new],
            gone=[name for name in before if name not in now],
            more=[line for line in more if line not in more_before],
            functions=prompt.functions,
        )

    def use_text(self) -> None:
        """Ask for code and calls in the text of replies, because the server takes no functions."""
        self._tools.use_text()
        self._describe()

    def _describe(self) -> PromptParts:
        self._parts = self._prompt()
        self._conversation.system = system_prompt(self._parts)
        return self._parts

    def _enabled(self) -> list[str]:
        return list(dict.fromkeys([*self._toolbox.names('code'), *self._toolbox.names('model')]))
