"""smolagents: `HabilisExecutor`, the sandbox as the Python of a `CodeAgent`."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, Unpack

from habilis.core.background_loop import run_blocking
from habilis.integrations.cells import failure_of, printed_by, result_of
from habilis.sandbox.host.functions import HostFunction
from habilis.sandbox.options import SandboxSettings
from habilis.sandbox.session import Sandbox

try:
    from smolagents.local_python_executor import CodeOutput, InterpreterError, PythonExecutor  # pyright: ignore[reportMissingTypeStubs]
except ModuleNotFoundError as error:
    msg = 'habilis.integrations.smolagents needs smolagents: pip install smolagents'
    raise ImportError(msg) from error

FINAL_ANSWER = 'final_answer'


class SmolagentsTool(Protocol):
    """A `Tool` of smolagents, or a managed agent."""

    @property
    def inputs(self) -> Mapping[str, object]:
        """What is said of each parameter."""
        ...

    @property
    def description(self) -> str:
        """What it does."""
        ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""
        ...


class HabilisExecutor(PythonExecutor):
    """Runs the code of a `CodeAgent` in a sandbox: `CodeAgent(…, executor=HabilisExecutor())`.

    Takes the arguments of `Sandbox.create`. The sandbox starts with the first run and keeps its variables, as the
    default executor does, until `agent.cleanup()` or the end of `with agent:`.
    """

    def __init__(self, backend_name: str = 'auto', /, **settings: Unpack[SandboxSettings]) -> None:
        self._backend_name = backend_name
        self._settings = settings
        self._sandbox: Sandbox | None = None
        self._answers: list[object] = []
        self.state: dict[str, object] = {}
        """`_print_outputs` is what the last code has printed: `CodeAgent` reads it if the code has failed."""

    def send_tools(self, tools: Mapping[str, SmolagentsTool]) -> None:
        """Offer the tools and managed agents of the agent to the code, beside the tools of the settings."""
        offered = [self._function(name, tool) for name, tool in tools.items()]
        run_blocking(self._started().set_tools([*(self._settings.get('tools') or ()), *offered]))

    def send_variables(self, variables: Mapping[str, object]) -> None:
        """Set the additional arguments of a run as variables. They must be plain data."""
        if variables:
            run_blocking(self._started().set_variables(variables))

    def __call__(self, code_action: str) -> CodeOutput:
        """Run the code of one step. Raises `InterpreterError` if it fails, which the agent shows to its model."""
        self._answers = []
        cell = run_blocking(self._started().run(code_action))
        self.state['_print_outputs'] = logs = printed_by(cell)
        if self._answers:
            return CodeOutput(output=self._answers[0], logs=logs, is_final_answer=True)
        if not cell.ok:
            raise InterpreterError(failure_of(cell))
        return CodeOutput(output=result_of(cell), logs=logs, is_final_answer=False)

    def cleanup(self) -> None:
        """Close the sandbox. A later run starts a new one."""
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            run_blocking(sandbox.close())

    def _started(self) -> Sandbox:
        if self._sandbox is None:
            self._sandbox = run_blocking(Sandbox.create(self._backend_name, **self._settings))
        return self._sandbox

    def _function(self, name: str, tool: SmolagentsTool) -> HostFunction:
        is_final = name == FINAL_ANSWER
        parameters = tuple(tool.inputs)
        return HostFunction(
            name=name,
            call=self._answer_with(tool) if is_final else tool,
            is_async=False,
            parameters=parameters,
            signature=f'({", ".join(parameters)})',
            doc=tool.description,
            is_reserved=True,
            ends_cell=is_final,
        )

    def _answer_with(self, final_answer: SmolagentsTool) -> Callable[..., None]:
        """The function that keeps the answer. The tool itself is called too: it may be one of the user."""

        def answer(*args: object, **kwargs: object) -> None:
            self._answers.append(final_answer(*args, **kwargs))

        return answer
