"""The shapes that a `Workflow` is made of: what each does with the outputs so far, and gives."""

import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, Union, cast

from habilis.flows.contract import FlowError
from habilis.flows.parallel import parallel
from habilis.flows.pieces import Choose, Piece, chosen


class Node(Protocol):
    """One part of a workflow, after those before it."""

    @property
    def name(self) -> str:
        """Of what it gives."""
        ...

    @property
    def result(self) -> Any:
        """The type of what it gives."""
        ...

    async def run(self, outputs: dict[str, object]) -> object:
        """Do it; what it gives is among the outputs afterwards, and returned."""
        ...


@dataclass(frozen=True, kw_only=True)
class One:
    """A step."""

    piece: Piece

    @property
    def name(self) -> str:
        """See `Node`."""
        return self.piece.name

    @property
    def result(self) -> Any:
        """See `Node`."""
        return self.piece.result

    async def run(self, outputs: dict[str, object]) -> object:
        """See `Node`."""
        outputs[self.name] = value = await self.piece.take(outputs)
        return value


@dataclass(frozen=True, kw_only=True)
class Side:
    """Several steps side by side; all of them see the same outputs."""

    pieces: tuple[Piece, ...]

    @property
    def name(self) -> str:
        """See `Node`."""
        return ' '.join(piece.name for piece in self.pieces)

    @property
    def result(self) -> Any:
        """See `Node`."""
        return dict[str, _either([piece.result for piece in self.pieces])]  # pyright: ignore[reportInvalidTypeForm]

    async def run(self, outputs: dict[str, object]) -> object:
        """See `Node`."""
        seen = types.MappingProxyType(dict(outputs))

        async def take(piece: Piece) -> object:
            return await piece.take(seen)

        values = await parallel(take, self.pieces)
        given = {piece.name: value for piece, value in zip(self.pieces, values, strict=True)}
        outputs.update(given)
        return given


@dataclass(frozen=True, kw_only=True)
class Each:
    """A step for each of some items."""

    piece: Piece
    name: str
    over: str | Choose
    limit: int | None

    @property
    def result(self) -> Any:
        """See `Node`."""
        return list[self.piece.result]

    async def run(self, outputs: dict[str, object]) -> object:
        """See `Node`."""
        items = chosen(self.over, outputs)
        if not isinstance(items, Iterable) or isinstance(items, (str, bytes)):
            msg = f'{self.name} goes over {type(items).__name__}, which is no list of items'
            raise FlowError(msg)

        async def take(item: object) -> object:
            return await self.piece.take_item(item, outputs)

        outputs[self.name] = values = await parallel(take, cast('Iterable[object]', items), limit=self.limit)
        return values


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A step again and again. Its newest output is there under its own name, all of them under that of the loop."""

    piece: Piece
    name: str
    condition: Choose
    limit: int

    @property
    def result(self) -> Any:
        """See `Node`."""
        return list[self.piece.result]

    async def run(self, outputs: dict[str, object]) -> object:
        """See `Node`."""
        rounds: list[object] = []
        while self.condition(outputs):
            if len(rounds) >= self.limit:
                msg = f'{self.name} would go on after {self.limit} rounds; raise its limit, or mend its condition'
                raise FlowError(msg)
            rounds.append(await self.piece.take(outputs))
            outputs[self.piece.name] = rounds[-1]
        outputs.setdefault(self.piece.name, None)
        outputs[self.name] = rounds
        return rounds


@dataclass(frozen=True, kw_only=True)
class When:
    """One of two steps, or none."""

    condition: Choose
    name: str
    then: Piece
    otherwise: Piece | None

    @property
    def result(self) -> Any:
        """See `Node`."""
        return _either([self.then.result, self.otherwise.result if self.otherwise else None])

    async def run(self, outputs: dict[str, object]) -> object:
        """See `Node`."""
        piece = self.then if self.condition(outputs) else self.otherwise
        outputs[self.name] = value = None if piece is None else await piece.take(outputs)
        return value


def _either(hints: list[Any]) -> Any:
    try:
        return Any if Any in hints else Union[tuple(hints)]  # noqa: UP007
    except TypeError:  # a hint that is not a type, such as text that could not be resolved
        return Any
