"""The response cache: the same request is answered from a file, and the provider is asked once. Off unless wanted."""

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import tempfile
import time
import weakref
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from habilis.core.codec import Json
from habilis.models.around import AroundModel, streaming
from habilis.models.config import ModelConfig
from habilis.models.contract import NO_OPTIONS, Delta, Message, Model, Options, Reply, Usage
from habilis.models.replies import reply_from_json, reply_to_json

_log = logging.getLogger(__name__)

_VERSION = 1
"""Of the files and of what goes into a key. Another number starts the cache anew."""


class CachedModel(AroundModel):
    """Keeps the replies of the model inside as files in `folder`, and answers an equal request from them.

    `config` holds the settings behind the model: with other settings (temperature, server, …) it is another request.
    Errors, empty replies and replies that were cut off are never kept. Equal requests at the same time wait for each
    other.
    """

    def __init__(self, model: Model, folder: str | Path, *, config: ModelConfig | None = None) -> None:
        super().__init__(model)
        self._folder = Path(folder)
        self._config = config
        self._locks: weakref.WeakValueDictionary[tuple[int, str], asyncio.Lock] = weakref.WeakValueDictionary()

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """One reply, from the cache if it is there."""
        started = time.perf_counter()
        key = self.key(messages, options)
        lock = self._alone(key)
        async with lock:
            if (known := self._read(key, started)) is not None:
                return known
            reply = await self.inner.request(messages, options)
            await self._keep(key, reply)
            return reply

    async def stream(
        self, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> AsyncGenerator[Delta | Reply, None]:
        """The reply bit by bit; one from the cache comes as one bit."""
        started = time.perf_counter()
        key = self.key(messages, options)
        lock = self._alone(key)
        async with lock:
            if (known := self._read(key, started)) is not None:
                arguments = ''.join(call.arguments for call in known.calls)
                yield Delta(text=known.text, thinking=known.thinking, arguments=arguments)
                yield known
                return
            async with streaming(self.inner, messages, options) as items:
                async for item in items:
                    if isinstance(item, Reply):
                        await self._keep(key, item)
                    yield item

    def key(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> str:
        """What makes two requests equal: model, settings, messages and options, as a sha256 of canonical JSON."""
        whole = {
            'version': _VERSION,
            'model': self.inner.name,
            'config': _config_key(self._config) if self._config else None,
            'messages': [_message_key(message) for message in messages],
            'options': _options_key(options, self._config),
        }
        return hashlib.sha256(json.dumps(whole, sort_keys=True, separators=(',', ':')).encode()).hexdigest()

    def _alone(self, key: str) -> asyncio.Lock:
        """One request of each kind at a time. A lock lives as long as somebody holds or awaits it."""
        place = (id(asyncio.get_running_loop()), key)
        lock = self._locks.get(place)
        if lock is None:
            lock = self._locks[place] = asyncio.Lock()
        return lock

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f'{key}.json'

    def _read(self, key: str, started: float) -> Reply | None:
        path = self._path(key)
        try:
            text = path.read_text(encoding='utf-8')
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            _log.warning('a cached reply cannot be read, the model is asked again: %s', error)
            return None
        try:
            reply = _reply_of(json.loads(text))
        except (ValueError, RecursionError) as error:
            _log.warning('the cached reply %s is damaged, the model is asked again: %s', path, error)
            return None
        usage = Usage(seconds=time.perf_counter() - started, cost=0.0)
        return replace(reply, cached=True, usage=usage)

    async def _keep(self, key: str, reply: Reply) -> None:
        if reply.finish == 'length' or not (reply.text or reply.calls):
            return
        try:
            await asyncio.to_thread(self._write, key, reply)
        except OSError as error:  # the reply is there and paid for: a full disk must not lose it
            _log.warning('a reply cannot be cached: %s', error)

    def _write(self, key: str, reply: Reply) -> None:
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({'version': _VERSION, 'asked': self.name, 'reply': reply_to_json(reply)}, ensure_ascii=False)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix='.', suffix='.draft')
        try:
            with os.fdopen(handle, 'w', encoding='utf-8') as file:
                file.write(text)
            Path(draft).replace(path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                Path(draft).unlink()
            raise


def _reply_of(stored: Json) -> Reply:
    if not isinstance(stored, dict) or stored.get('version') != _VERSION or not isinstance(stored.get('reply'), dict):
        msg = 'not a file of this cache'
        raise ValueError(msg)
    return reply_from_json(stored['reply'])


def _message_key(message: Message) -> Json:
    """What of a message reaches the model. Not when it was written, nor what the model thought."""
    calls: Json = [[call.id, call.name, call.arguments] for call in message.calls]
    return [message.role, message.text, calls, message.call_id, message.call_name]


def _options_key(options: Options, config: ModelConfig | None) -> Json:
    functions: Json = [[each.name, each.description, _plain(each.parameters)] for each in options.functions]
    stop: Json = list(options.stop)
    return [functions, stop, _temperature_key(options, config), options.max_tokens, _plain(options.extra)]


def _temperature_key(options: Options, config: ModelConfig | None) -> Json:
    if config is not None:
        return config.temperature_for(options)
    if options.temperature is not None:
        return options.temperature
    return {'fallback': options.fallback_temperature}  # has an effect only if the model has no temperature of its own


def _config_key(config: ModelConfig) -> Json:
    """The settings that change an answer. Not the key (who asks), nor timeout and retries (how patiently)."""
    return [
        config.model,
        config.temperature,
        config.max_tokens,
        config.base_url,
        config.functions,
        _plain(config.extra),
    ]


def _plain(value: Mapping[str, Json]) -> Json:
    """The same as a dict, whatever kind of mapping it and its parts are."""
    return cast('Json', {key: _plain(part) if isinstance(part, Mapping) else part for key, part in value.items()})
