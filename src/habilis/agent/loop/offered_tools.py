"""Keeps what the model is told about its tools in step with the tools that are enabled."""

from collections.abc import Callable

from habilis.agent.context.conversation import Conversation
from habilis.agent.context.prompt import PromptParts, changed_tools_message, system_prompt
from habilis.agent.loop.tool_calls import ToolCaller
from habilis.agent.policies import History, Policy
from habilis.tools import Toolbox


class OfferedTools:
    """The tools that the prompt of one run describes. The prompt changes only when they do."""

    def __init__(
        self,
        toolbox: Toolbox,
        tools: ToolCaller,
        *,
        conversation: Conversation,
        prompt: Callable[[], PromptParts],
        policy: Policy,
        history: History,
    ) -> None:
        self._toolbox = toolbox
        self._tools = tools
        self._conversation = conversation
        self._prompt = prompt
        self._policy = policy
        self._history = history
        self._names = self._enabled()
        self.system_without_stop = system_prompt(prompt().without_stop())
        """The system prompt of a step that cannot end the run."""

    def update(self, *, announce: bool) -> str:
        """Describe the tools that are enabled now. Returns what has changed, if the model is to be told."""
        self._toolbox.update()
        before, now = self._names, self._enabled()
        if now == before:
            return ''
        self._names = now
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
            functions=prompt.functions,
        )

    def use_text(self) -> None:
        """Ask for code and calls in the text of replies, because the server takes no functions."""
        self._tools.use_text()
        self._describe()

    def _describe(self) -> PromptParts:
        prompt = self._prompt()
        self._conversation.system = system_prompt(prompt)
        self.system_without_stop = system_prompt(prompt.without_stop())
        return prompt

    def _enabled(self) -> list[str]:
        return list(dict.fromkeys([*self._toolbox.names('code'), *self._toolbox.names('model')]))
