"""A `Workflow` as a Mermaid flowchart."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from habilis.flows.contract import State, StepStatus
from habilis.flows.nodes import Each, Loop, Node, One, Side, When
from habilis.flows.pieces import Piece

if TYPE_CHECKING:
    from habilis.flows.workflow import Workflow

Chain = tuple[str, ...]
"""The names of a step and of the workflows around it."""

End = tuple[str, str]
"""Where an arrow begins, and its label."""

_COLOURS: dict[State, str] = {
    'done': 'fill:#d3f9d8,stroke:#2b8a3e',
    'failed': 'fill:#ffe3e3,stroke:#c92a2a',
    'running': 'fill:#d0ebff,stroke:#1864ab',
    'waiting': 'fill:#fff3bf,stroke:#e67700',
    'not run': 'fill:#f1f3f5,stroke:#868e96',
}
_WORST_FIRST: tuple[State, ...] = ('failed', 'waiting', 'running', 'done')


def draw(workflow: 'Workflow', status: Sequence[StepStatus] | None = None) -> str:
    """The text of the flowchart."""
    drawing = _Drawing()
    drawing.lines.append('start([input])')
    ends = drawing.nodes(workflow.nodes, (), [('start', '')])
    drawing.lines.append('finish([output])')
    drawing.link(ends, 'finish')
    if status is not None:
        drawing.colour(status)
    return '\n'.join(['flowchart TD', *(f'    {line}' for line in [*drawing.lines, *drawing.later]), ''])


def planned(workflow: 'Workflow', found: Sequence[StepStatus]) -> list[StepStatus]:
    """The steps that have not begun, in the order of the workflow."""
    begun = {chain_of(step.path) for step in found}
    drawing = _Drawing()
    drawing.nodes(workflow.nodes, (), [])
    chains = [chain for chain in dict.fromkeys(drawing.chains.values()) if chain not in begun]
    return [
        StepStatus(path='/'.join(f'{name}#1' for name in (workflow.name, *chain)), name=chain[-1], state='not run')
        for chain in chains
    ]


def chain_of(path: str) -> Chain:
    """The names in a path below its flow, without numbers, branches and the groups of parallel steps."""
    parts = [part.rpartition('#') for part in path.split('/')[1:] if not part.startswith('~')]
    names = [name for name, _, _ in parts]
    return tuple(name for name in names if name != 'parallel')


class _Drawing:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.later: list[str] = []
        """Arrows and colours: a node that is named inside a subgraph would be drawn in it."""

        self.chains: dict[str, Chain] = {}
        """Of each step, by the id of its node."""

        self._count = 0

    def _new(self) -> str:
        self._count += 1
        return f'n{self._count}'

    def link(self, ends: Sequence[End], to: str) -> None:
        for start, label in ends:
            arrow = f'-->|{label}|' if label else '-->'
            self.later.append(f'{start} {arrow} {to}')

    def nodes(self, nodes: Sequence[Node], around: Chain, ends: Sequence[End]) -> Sequence[End]:
        for node in nodes:
            ends = self._node(node, around, ends)
        return ends

    def _node(self, node: Node, around: Chain, ends: Sequence[End]) -> Sequence[End]:
        match node:
            case One(piece=piece):
                return self._piece(piece, around, ends)
            case Side(pieces=pieces):
                return [end for piece in pieces for end in self._piece(piece, around, ends)]
            case Each(piece=piece):
                return self._piece(piece, around, ends, each=True)
            case Loop():
                choice = self._choice(node.condition, 'while', ends)
                self.link(self._piece(node.piece, around, [(choice, 'yes')]), choice)
                return [(choice, 'no')]
            case When():
                choice = self._choice(node.condition, 'if', ends)
                after = self._piece(node.then, around, [(choice, 'yes')])
                if node.otherwise is None:
                    return [*after, (choice, 'no')]
                return [*after, *self._piece(node.otherwise, around, [(choice, 'no')])]
            case _:
                return ends

    def _piece(self, piece: Piece, around: Chain, ends: Sequence[End], *, each: bool = False) -> Sequence[End]:
        chain = (*around, piece.name)
        label = f'for each: {piece.name}' if each else piece.name
        if piece.inside:
            self.lines.append(f'subgraph {self._new()}[{_quoted(label)}]')
            last = self.nodes(piece.inside, chain, ends)
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
    """A label: what has a meaning in Mermaid is written as an entity."""
    plain = ' '.join(text.split())
    return '"' + ''.join(f'#{ord(letter)};' if letter in '"#&<>`' else letter for letter in plain) + '"'
