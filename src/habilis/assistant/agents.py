"""The agent of a session: its model, its instructions and its tools."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from habilis.agent.agent import Agent
from habilis.agent.agent_tools import each_tool
from habilis.agent.chat import Chat
from habilis.agent.context.instructions import parts_of
from habilis.agent.memory_tools import memory_tools
from habilis.agent.options import AnyTool, ModelChoice, WorkOptions
from habilis.agent.policies import Policy, load_policy
from habilis.assistant.contract import View
from habilis.assistant.file_edits import FolderEdits
from habilis.assistant.modes import Mode, plan_gate, plan_tools, with_mode
from habilis.assistant.project_instructions import InstructionFile, ProjectInstructions
from habilis.core.errors import ModelError
from habilis.journal import Store
from habilis.memory import Memory
from habilis.models.contract import Model
from habilis.models.engine import EngineModel
from habilis.models.loader import load_model
from habilis.models.wrapper import WrapperModel
from habilis.tools import people_toolset, todo_toolset
from habilis.tools.toolsets.todo import TODO_WRITE


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What the agents of one session have in common."""

    memory: Memory
    session: Callable[[], str]
    """Returns the id of the conversation, which may change."""

    store: Store
    view: View


class SessionAgent:
    """An agent with the memory and the user of a session, and the model that was opened for it."""

    def __init__(self, model: Model, options: WorkOptions, around: Surroundings, mode: Mode) -> None:
        memory, store, view = around.memory, around.store, around.view
        self.model = model
        options = with_mode(options, mode)
        self.edits = FolderEdits.of(
            options, (memory.path, getattr(store, 'path', None), getattr(store, 'folder', None))
        )
        self.policy: Policy = load_policy(None, model.traits)
        asks = view.is_present and self.policy.may_ask_people()
        people = [people_toolset(view.answer)] if asks else []
        has_list = any(tool.name == TODO_WRITE for tool in each_tool(options.get('tools', ())))
        if asks and mode != 'plan' and not has_list:  # a view shows the list; a small model would keep it, not work
            people.append(todo_toolset())
        tools: list[AnyTool] = [*options.get('tools', ()), memory_tools(memory, around.session), *people]
        self.tools = plan_tools(tools) if mode == 'plan' else tools
        own = files('habilis.assistant').joinpath('instructions.md').read_text(encoding='utf-8').strip()
        folder = options.get('workspace')
        self.folder = None if folder is None or isinstance(folder, bool) else Path(folder)
        """The folder that is shared with the code; None if there is none, or only a temporary one."""

        self._project = (
            None
            if self.folder is None
            else ProjectInstructions(self.folder, context_tokens=model.traits.context_tokens)
        )
        project = [] if self._project is None else [self._project.text]
        instructions = [own, *parts_of(options.get('instructions', '')), *project]
        gates = [*options.get('gates', ()), *([plan_gate(self.tools)] if mode == 'plan' else [])]
        given: dict[str, Any] = {**options, 'tools': self.tools, 'instructions': instructions, 'gates': gates}
        approve = view.approve if view.is_present else None
        self.agent = Agent[Any](model, journal=store, approve=approve, talk=True, name='chat', **given)
        self._own_model: Model | None = None
        self._connecting = asyncio.ensure_future(_connect(model))

    @classmethod
    async def open(cls, choice: ModelChoice | None, options: WorkOptions, around: Surroundings, mode: Mode) -> Self:
        """Load the model if it is given by name, and make the agent. Raises `HabilisError`."""
        if isinstance(choice, Model):
            return cls(choice, options, around, mode)
        model = await asyncio.to_thread(lambda: load_model(choice, settings=options.get('settings')))
        try:
            opened = cls(model, options, around, mode)
        except BaseException:
            await model.close()
            raise
        opened._own_model = model
        return opened

    @property
    def instructions(self) -> Sequence[InstructionFile]:
        """Those of the project, as they are now."""
        return () if self._project is None else self._project.files()

    async def conversation(self, session: str, *, user: str, copy_of: str) -> Chat[Any]:
        """The conversation of this id; where it has no turn yet, a copy of another."""
        if not copy_of:
            return self.agent.conversation(session, user=user)
        async with self.agent.conversation(copy_of, user=user) as original:
            return await original.fork(session)

    def take_model(self, other: 'SessionAgent') -> None:
        """Take over the model of another agent, which was loaded for it."""
        self._own_model, other._own_model = other._own_model, None

    async def close(self) -> None:
        """Free the agent, and the model if it was loaded here."""
        self._connecting.cancel()
        await self.agent.close()
        if self._own_model is not None:
            await self._own_model.close()


async def _connect(model: Model) -> None:
    """Import and open what the first message needs, while the user types it. If that fails, the message says why."""
    while isinstance(model, WrapperModel):
        model = model.inner
    if isinstance(model, EngineModel):
        with contextlib.suppress(ModelError):
            await model.connect()
