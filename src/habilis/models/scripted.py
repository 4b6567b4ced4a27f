"""A model that answers from a script: for tests, and for demos with no model at hand. Shown to people as scripted."""

import asyncio
import inspect
import json
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Self

from habilis.core.codec import Json
from habilis.core.errors import ModelError
from habilis.models.around import AroundModel, streaming
from habilis.models.contract import NO_OPTIONS, Delta, Message, Model, Options, Reply, Traits, Usage
from habilis.models.replies import reply_from_json, reply_to_json
from habilis.models.tokens import count_message_tokens, count_tokens

Scripted = str | Reply | Exception
"""One reply of a script: its text, all of it, or an error to raise."""

Script = Callable[[Sequence[Message]], Scripted | Awaitable[Scripted]]
"""Makes the reply from the messages."""

_WORD = re.compile(r'\S+\s*|\s+')


class Asked(NamedTuple):
    """One request that a scripted model got."""

    messages: tuple[Message, ...]
    options: Options


class ScriptedModel:
    """Answers from a list of replies, one after the other, or from a function of the messages.

    `latency` is the seconds that one reply takes; a stream spreads them over its words. A function finds the options of
    its request in `requests[-1].options`.
    """

    def __init__(
        self,
        replies: Sequence[Scripted] | Script,
        *,
        name: str = 'scripted:script',
        functions: bool = False,
        latency: float = 0.0,
        context_tokens: int = 128_000,
        small: bool = False,
    ) -> None:
        self._script = replies if callable(replies) else None
        self._replies = [replies] if isinstance(replies, str) else [] if callable(replies) else list(replies)
        self._given = 0
        self._name = name
        self._traits = Traits(
            functions=functions, scripted=True, local=True, context_tokens=context_tokens, small=small
        )
        self._latency = latency
        self.requests: list[Asked] = []
        """What it was asked, in order."""

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        name: str | None = None,
        functions: bool = False,
        latency: float = 0.0,
        small: bool = False,
    ) -> Self:
        """Plays a file of replies: JSON lines or one JSON list, each item a text or an object as `record` writes it."""
        path = Path(path)
        replies = [*_read_replies(path)]
        return cls(replies, name=name or f'scripted:{path.stem}', functions=functions, latency=latency, small=small)

    def skip(self, replies: int) -> None:
        """Go on after so many replies, which were given in an earlier process."""
        self._given = min(max(self._given, replies), len(self._replies))

    @property
    def name(self) -> str:
        """As `scripted:something`."""
        return self._name

    @property
    def traits(self) -> Traits:
        """Always marked as scripted."""
        return self._traits

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """The next reply. Raises what the script says, and `ModelError` when the script is at its end."""
        started = time.perf_counter()
        reply = await self._next(messages, options)
        if self._latency:
            await asyncio.sleep(self._latency)
        return self._timed(reply, started)

    async def stream(
        self, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> AsyncGenerator[Delta | Reply, None]:
        """The next reply word by word."""
        started = time.perf_counter()
        reply = await self._next(messages, options)
        deltas = [*_deltas(reply)]
        pause = self._latency / max(1, len(deltas))
        for delta in deltas:
            if pause:
                await asyncio.sleep(pause)
            yield delta
        yield self._timed(reply, started)

    async def close(self) -> None:
        """Nothing to free."""

    async def _next(self, messages: Sequence[Message], options: Options) -> Reply:
        asked = Asked(tuple(messages), options)
        self.requests.append(asked)
        scripted = self._take() if self._script is None else self._script(asked.messages)
        if inspect.isawaitable(scripted):
            scripted = await scripted
        if isinstance(scripted, Exception):
            raise scripted
        reply = Reply(text=scripted) if isinstance(scripted, str) else scripted
        return replace(reply, model=reply.model or self._name, usage=_usage(asked, reply))

    def _take(self) -> Scripted:
        if self._given == len(self._replies):
            msg = f'{self._name} has no more replies: {self._given} were given, and this is request {self._given + 1}'
            raise ModelError(msg)
        self._given += 1
        return self._replies[self._given - 1]

    @staticmethod
    def _timed(reply: Reply, started: float) -> Reply:
        if reply.usage.seconds:
            return reply
        return replace(reply, usage=replace(reply.usage, seconds=time.perf_counter() - started))


class RecordingModel(AroundModel):
    """Writes each reply of the model inside to a file, one JSON object a line, as soon as it is there.

    The file is begun anew with the first reply. Errors are not recorded.
    """

    def __init__(self, model: Model, path: str | Path) -> None:
        super().__init__(model)
        self._path = Path(path)
        self._begun = False

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """One reply, recorded."""
        reply = await self.inner.request(messages, options)
        self._write(reply)
        return reply

    async def stream(
        self, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> AsyncGenerator[Delta | Reply, None]:
        """The reply bit by bit, recorded when it is complete."""
        async with streaming(self.inner, messages, options) as items:
            async for item in items:
                if isinstance(item, Reply):
                    self._write(item)
                yield item

    def _write(self, reply: Reply) -> None:
        if not self._begun:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open('a' if self._begun else 'w', encoding='utf-8') as file:
            file.write(json.dumps(reply_to_json(reply), ensure_ascii=False) + '\n')
        self._begun = True


def record(model: Model, path: str | Path) -> RecordingModel:
    """The same model, whose replies are also written to `path`, for `ScriptedModel.from_file`."""
    return RecordingModel(model, path)


def _usage(asked: Asked, reply: Reply) -> Usage:
    """What the script says; otherwise counted from the texts."""
    if reply.usage != Usage():
        return reply.usage
    said = (reply.text, reply.thinking, *(call.name + call.arguments for call in reply.calls))
    return Usage(
        requests=1,
        input_tokens=count_message_tokens(asked.messages),
        output_tokens=sum(map(count_tokens, said)),
        cost=0.0,
    )


def _deltas(reply: Reply) -> Iterator[Delta]:
    yield from (Delta(thinking=word) for word in _WORD.findall(reply.thinking))
    yield from (Delta(text=word) for word in _WORD.findall(reply.text))
    for call in reply.calls:
        yield from (Delta(arguments=word) for word in _WORD.findall(call.arguments))


def _read_replies(path: Path) -> Iterator[Reply]:
    for place, item in _items(path):
        try:
            yield reply_from_json(item)
        except ValueError as error:
            msg = f'{path}: {place}: {error}'
            raise ModelError(msg) from None


def _items(path: Path) -> Iterator[tuple[str, Json]]:
    """The JSON items of a file, each with its place in it."""
    try:
        text = path.read_text(encoding='utf-8-sig')
    except (OSError, UnicodeDecodeError) as error:
        msg = f'cannot read the script {path}: {error}'
        raise ModelError(msg) from None
    if text.lstrip().startswith('['):
        items = _json(path, 'the list', text)
        assert isinstance(items, list)  # JSON that starts with `[`
        yield from ((f'item {number}', item) for number, item in enumerate(items, 1))
        return
    for number, line in enumerate(text.split('\n'), 1):
        if line.strip():
            yield f'line {number}', _json(path, f'line {number}', line)


def _json(path: Path, place: str, text: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f'{path}: {place} is not JSON: {error}. Write one reply a line, or one JSON list of replies.'
        raise ModelError(msg) from None
