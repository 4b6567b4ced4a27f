"""A `Workflow` as a Mermaid flowchart."""

from collections.abc import Callable, Sequence

from habilis.flows.contract import State, StepStatus
from habilis.flows.nodes import EachNode, LoopNode, Node, ParallelNode, StepNode, WhenNode, WorkflowStep

Chain = tuple[str, ...]
"""The names of a step and of the workflows around it."""

End = tuple[str, str]
"""The start of an arrow, and its label."""

_COLOURS: dict[State, str] = {
    'done': 'fill:#d3f9d8,stroke:#2b8a3e',
    'failed': 'fill:#ffe3e3,stroke:#c92a2a',
    'running': 'fill:#d0ebff,stroke:#1864ab',
    'waiting': 'fill:#fff3bf,stroke:#e67700',
    'not run': 'fill:#f1f3f5,stroke:#868e96',
}
_WORST_FIRST: tuple[State, ...] = ('failed', 'waiting', 'running', 'done')


def draw(nodes: Sequence[Node], status: Sequence[StepStatus] | None = None) -> str:
    """The flowchart of these nodes."""
    drawing = _Drawing()
    drawing.lines.append('start([input])')
    ends = drawing.nodes(nodes, (), [('start', '')])
    drawing.lines.append('finish([output])')
    drawing.link(ends, 'finish')
    if status is not None:
        drawing.colour(status)
    return '\n'.join(['flowchart TD', *(f'    {line}' for line in [*drawing.lines, *drawing.later]), ''])


def not_started(flow: str, nodes: Sequence[Node], started: Sequence[StepStatus]) -> list[StepStatus]:
    """The steps of the flow of this name that have not started, in the order of its nodes."""
    known = {chain_of(step.path) for step in started}
    drawing = _Drawing()
    drawing.nodes(nodes, (), [])
    chains = [chain for chain in dict.fromkeys(drawing.chains.values()) if chain not in known]
    return [
        StepStatus(path='/'.join(f'{name}#1' for name in (flow, *chain)), name=chain[-1], state='not run')
        for chain in chains
    ]


def chain_of(path: str) -> Chain:
    """The step names of a path below its flow, without numbers, branches and groups of parallel steps."""
    parts = [part.rpartition('#') for part in path.split('/')[1:] if not part.startswith('~')]
    names = [name for name, _, _ in parts]
    return tuple(name for name in names if name != 'parallel')


class _Drawing:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.later: list[str] = []
        """Arrows and colours. They come last, because a node named inside a subgraph would be drawn in it."""

        self.chains: dict[str, Chain] = {}
        """The chain of each step, by the id of its node in the chart."""

        self._count = 0

    def _new(self) -> str:
        self._count += 1
        return f'n{self._count}'

    def link(self, ends: Sequence[End], to: str) -> None:
        for start, label in ends:
            arrow = f'-->|{label}|' if label else '-->'
            self.later.append(f'{start} {arrow} {to}')

    def nodes(self, nodes: Sequence[Node], outer: Chain, ends: Sequence[End]) -> Sequence[End]:
        for node in nodes:
            ends = self._node(node, outer, ends)
        return ends

    def _node(self, node: Node, outer: Chain, ends: Sequence[End]) -> Sequence[End]:
        match node:
            case StepNode(step=step):
                return self._step(step, outer, ends)
            case ParallelNode(steps=steps):
                return [end for step in steps for end in self._step(step, outer, ends)]
            case EachNode(step=step):
                return self._step(step, outer, ends, each=True)
            case LoopNode():
                choice = self._choice(node.condition, 'while', ends)
                self.link(self._step(node.step, outer, [(choice, 'yes')]), choice)
                return [(choice, 'no')]
            case WhenNode():
                choice = self._choice(node.condition, 'if', ends)
                after = self._step(node.then, outer, [(choice, 'yes')])
                if node.otherwise is None:
                    return [*after, (choice, 'no')]
                return [*after, *self._step(node.otherwise, outer, [(choice, 'no')])]
            case _:
                return ends

    def _step(self, step: WorkflowStep, outer: Chain, ends: Sequence[End], *, each: bool = False) -> Sequence[End]:
        chain = (*outer, step.name)
        label = f'for each: {step.name}' if each else step.name
        if step.nodes:
            self.lines.append(f'subgraph {self._new()}[{_quoted(label)}]')
            last = self.nodes(step.nodes, chain, ends)
            self.lines.append('end')
            return last
        node = self._new()
        self.chains[node] = chain
        self.lines.append(f'{node}[[{_quoted(label)}]]' if each else f'{node}[{_quoted(label)}]')
        self.link(ends, node)
        return [(node, '')]

    def _choice(self, condition: Callable[..., object], word: str, ends: Sequence[End]) -> str:
        name = str(getattr(condition, '__name__', ''))
        node = self._new()
        self.lines.append(f'{node}{{{_quoted(word if name in {"", "<lambda>"} else f"{word} {name}")}}}')
        self.link(ends, node)
        return node

    def colour(self, status: Sequence[StepStatus]) -> None:
        states: dict[Chain, set[State]] = {}
        for step in status:
            states.setdefault(chain_of(step.path), set()).add(step.state)
        self.later += [f'classDef {_class(state)} {colour}' for state, colour in _COLOURS.items()]
        for node, chain in self.chains.items():
            of_step = states.get(chain, set[State]())
            worst: list[State] = [state for state in _WORST_FIRST if state in of_step]
            state = worst[0] if worst else 'not run'
            self.later.append(f'class {node} {_class(state)}')


def _class(state: State) -> str:
    return state.replace(' ', '_')


def _quoted(text: str) -> str:
    """A label, with the special characters of Mermaid as entities."""
    plain = ' '.join(text.split())
    return '"' + ''.join(f'#{ord(letter)};' if letter in '"#&<>`' else letter for letter in plain) + '"'
