"""Response cache: an equal request is answered from a file. Off by default."""

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

from habilis.core.codec import Json
from habilis.models.config import ModelConfig
from habilis.models.contract import NO_OPTIONS, Delta, Message, Model, Options, Reply, Usage
from habilis.models.reply_codec import reply_from_json, reply_to_json
from habilis.models.wrapper import WrapperModel, streaming

_log = logging.getLogger(__name__)

_VERSION = 1
"""Version of the file format and of the key. A new version starts with an empty cache."""


class CachedModel(WrapperModel):
    """Stores the replies of the inner model as files in `folder`, and answers equal requests from them.

    `config` is part of the key: other settings (temperature, server, …) make another request. Errors, empty replies and
    truncated replies are not stored. Concurrent equal requests wait for the first one.
    """

    def __init__(self, model: Model, folder: str | Path, *, config: ModelConfig | None = None) -> None:
        super().__init__(model)
        self._folder = Path(folder)
        self._config = config
        self._locks: weakref.WeakValueDictionary[tuple[int, str], asyncio.Lock] = weakref.WeakValueDictionary()

    async def request(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> Reply:
        """Return the reply, from the cache if it is there."""
        started = time.perf_counter()
        key = self.key(messages, options)
        lock = self._lock_of(key)
        async with lock:
            if (known := self._read(key, started)) is not None:
                return known
            reply = await self.inner.request(messages, options)
            await self._store(key, reply)
            return reply

    async def stream(
        self, messages: Sequence[Message], options: Options = NO_OPTIONS
    ) -> AsyncGenerator[Delta | Reply, None]:
        """Stream the reply; a cached one is a single delta."""
        started = time.perf_counter()
        key = self.key(messages, options)
        lock = self._lock_of(key)
        async with lock:
            if (known := self._read(key, started)) is not None:
                arguments = ''.join(call.arguments for call in known.calls)
                yield Delta(text=known.text, thinking=known.thinking, arguments=arguments)
                yield known
                return
            async with streaming(self.inner, messages, options) as items:
                async for item in items:
                    if isinstance(item, Reply):
                        await self._store(key, item)
                    yield item

    def key(self, messages: Sequence[Message], options: Options = NO_OPTIONS) -> str:
        """Cache key: sha256 of model, settings, messages and options as canonical JSON."""
        whole = {
            'version': _VERSION,
            'model': self.inner.name,
            'config': _config_key(self._config) if self._config else None,
            'messages': [_message_key(message) for message in messages],
            'options': _options_key(options, self._config),
        }
        return hashlib.sha256(json.dumps(whole, sort_keys=True, separators=(',', ':')).encode()).hexdigest()

    def _lock_of(self, key: str) -> asyncio.Lock:
        """Lock of a key in the running event loop. It lives as long as a request holds or awaits it."""
        lock_key = (id(asyncio.get_running_loop()), key)
        lock = self._locks.get(lock_key)
        if lock is None:
            lock = self._locks[lock_key] = asyncio.Lock()
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
            _log.warning('cannot read a cached reply, requesting it again: %s', error)
            return None
        try:
            reply = _reply_of(json.loads(text))
        except (ValueError, RecursionError) as error:
            _log.warning('cached reply %s is damaged, requesting it again: %s', path, error)
            return None
        usage = Usage(seconds=time.perf_counter() - started, cost=0.0)
        return replace(reply, cached=True, usage=usage)

    async def _store(self, key: str, reply: Reply) -> None:
        if reply.finish == 'length' or not (reply.text or reply.calls):
            return
        try:
            await asyncio.to_thread(self._write, key, reply)
        except OSError as error:  # a full disk must not lose a reply that is paid for
            _log.warning('cannot cache a reply: %s', error)

    def _write(self, key: str, reply: Reply) -> None:
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({'version': _VERSION, 'model': self.name, 'reply': reply_to_json(reply)}, ensure_ascii=False)
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
        msg = 'not a file of this version of the cache'
        raise ValueError(msg)
    return reply_from_json(stored['reply'])


def _message_key(message: Message) -> Json:
    """The fields of a message that are sent to the model."""
    calls: Json = [[call.id, call.name, call.arguments] for call in message.calls]
    key: list[Json] = [message.role, message.text, calls, message.call_id, message.call_name]
    return [*key, *(image.digest for image in message.images)]


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
    """The settings that can change a reply: not the API key, the timeout or the retries."""
    return [
        config.model,
        config.temperature,
        config.max_tokens,
        config.base_url,
        config.functions,
        _plain(config.extra),
    ]


def _plain(value: Mapping[str, Json]) -> Json:
    """The mapping and its nested mappings as dicts."""
    return {key: _plain(part) if isinstance(part, Mapping) else part for key, part in value.items()}
