"""A model that replies from a script, for tests and demos. User interfaces label it as scripted."""

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
from habilis.models.contract import (
    NO_OPTIONS,
    Delta,
    Message,
    Model,
    Options,
    Reply,
    Traits,
    Usage,
    check_images,
    images_in,
)
from habilis.models.reply_codec import reply_from_json, reply_to_json
from habilis.models.tokens import count_message_tokens, count_tokens
from habilis.models.wrapper import WrapperModel, streaming

Scripted = str | Reply | Exception
"""One reply of a script: its text, a complete `Reply`, or an error to raise."""

Script = Callable[[Sequence[Message]], Scripted | Awaitable[Scripted]]
"""Function from the messages to the reply."""

MAX_REQUESTS = 1000
"""How many requests a model remembers: ten thousand runs may share one."""

_WORD = re.compile(r'\S+\s*|\s+')


class ScriptedRequest(NamedTuple):
    """A request that a scripted model received."""

    messages: tuple[Message, ...]
    options: Options


class ScriptedModel:
    """Replies from a list, in order, or from a function of the messages.

    `latency` is the time of one reply in seconds; a stream spreads it over its words. A function finds the options of
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
        images: bool = False,
    ) -> None:
        self._script = replies if callable(replies) else None
        self._replies = [replies] if isinstance(replies, str) else [] if callable(replies) else list(replies)
        self._given = 0
        self._name = name
        self._traits = Traits(
            functions=functions, scripted=True, local=True, context_tokens=context_tokens, small=small, images=images
        )
        self._latency = latency
        self.requests: list[ScriptedRequest] = []
        """The latest requests, at most `MAX_REQUESTS`, in order."""

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
        """Replay a file of replies: JSON lines or a JSON list of strings or objects as `record` writes them."""
        path = Path(path)
        replies = [*_read_replies(path)]
        return cls(replies, name=name or f'scripted:{path.stem}', functions=functions, latency=latency, small=small)

    def skip(self, replies: int) -> None:
        """Continue after the first `replies` replies, which an earlier process has used."""
        self._given = min(max(self._given, replies), len(self._replies))

    def reply_by_turn(self) -> None:
        """Reply by the place in the conversation, so that many runs share a script."""
        self._script = self._reply_of_turn

    def _reply_of_turn(self, messages: Sequence[Message]) -> Scripted:
        self._given = sum(message.role == 'assistant' for message in messages)
        return self._take()

    @property
    def name(self) -> str:
        """`scripted:name`."""
        return self._name

    @property
    def traits(self) -> Traits:
        """`scripted` is always set."""
        return self._traits

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """Return the next reply. Raises the script's error, or `ModelError` at the end of the script."""
        started = time.perf_counter()
        reply = await self._next(messages, options)
        if self._latency:
            await asyncio.sleep(self._latency)
        return self._timed(reply, started)

    async def stream(
        self, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> AsyncGenerator[Delta | Reply, None]:
        """Stream the next reply word by word."""
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
        """Does nothing."""

    async def _next(self, messages: Sequence[Message], options: Options) -> Reply:
        check_images(self, images_in(messages))
        request = ScriptedRequest(tuple(messages), options)
        self.requests.append(request)
        del self.requests[:-MAX_REQUESTS]
        scripted = self._take() if self._script is None else self._script(request.messages)
        if inspect.isawaitable(scripted):
            scripted = await scripted
        if isinstance(scripted, Exception):
            raise scripted
        reply = Reply(text=scripted) if isinstance(scripted, str) else scripted
        return replace(reply, model=reply.model or self._name, usage=_usage(request, reply))

    def _take(self) -> Scripted:
        if self._given >= len(self._replies):
            msg = f'{self._name} has no more replies: request {self._given + 1}, but the script has only {self._given}'
            raise ModelError(msg)
        self._given += 1
        return self._replies[self._given - 1]

    @staticmethod
    def _timed(reply: Reply, started: float) -> Reply:
        if reply.usage.seconds:
            return reply
        return replace(reply, usage=replace(reply.usage, seconds=time.perf_counter() - started))


def script_of(model: Model) -> ScriptedModel | None:
    """The scripted model that replies, also inside of other models."""
    while isinstance(model, WrapperModel):
        model = model.inner
    return model if isinstance(model, ScriptedModel) else None


class RecordingModel(WrapperModel):
    """Appends each reply of the inner model to a file, as one JSON object per line.

    The first reply overwrites an existing file. Errors are not recorded.
    """

    def __init__(self, model: Model, path: str | Path) -> None:
        super().__init__(model)
        self._path = Path(path)
        self._has_started = False

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """Return the reply and record it."""
        reply = await self.inner.request(messages, options)
        self._write(reply)
        return reply

    async def stream(
        self, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> AsyncGenerator[Delta | Reply, None]:
        """Stream the reply and record it when it is complete."""
        async with streaming(self.inner, messages, options) as items:
            async for item in items:
                if isinstance(item, Reply):
                    self._write(item)
                yield item

    def _write(self, reply: Reply) -> None:
        if not self._has_started:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open('a' if self._has_started else 'w', encoding='utf-8') as file:
            file.write(json.dumps(reply_to_json(reply), ensure_ascii=False) + '\n')
        self._has_started = True


def record(model: Model, path: str | Path) -> RecordingModel:
    """Wrap a model so that its replies are also written to `path`, for `ScriptedModel.from_file`."""
    return RecordingModel(model, path)


def _usage(request: ScriptedRequest, reply: Reply) -> Usage:
    """The usage in the script, or else an estimate from the texts."""
    if reply.usage != Usage():
        return reply.usage
    texts = (reply.text, reply.thinking, *(call.name + call.arguments for call in reply.calls))
    return Usage(
        requests=1,
        input_tokens=count_message_tokens(request.messages),
        output_tokens=sum(map(count_tokens, texts)),
        cost=0.0,
    )


def _deltas(reply: Reply) -> Iterator[Delta]:
    yield from (Delta(thinking=word) for word in _WORD.findall(reply.thinking))
    yield from (Delta(text=word) for word in _WORD.findall(reply.text))
    for call in reply.calls:
        yield from (Delta(arguments=word) for word in _WORD.findall(call.arguments))


def _read_replies(path: Path) -> Iterator[Reply]:
    for position, item in _items(path):
        try:
            yield reply_from_json(item)
        except ValueError as error:
            msg = f'{path}: {position}: {error}'
            raise ModelError(msg) from None


def _items(path: Path) -> Iterator[tuple[str, Json]]:
    """The JSON items of a file, each with its position."""
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


def _json(path: Path, position: str, text: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f'{path}: {position} is not JSON: {error}. Write one reply per line, or one JSON list of replies.'
        raise ModelError(msg) from None
