"""Backend for the package `xllamacpp`: a llama.cpp server inside this process.

Requests are function calls. Only saving and restoring the state of the slot uses its HTTP port, as there is no function
for that: the port is on loopback and needs a random key.
"""

import http.client
import json
import secrets
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Protocol, cast

from habilis.core.codec import Json
from habilis.core.errors import ContextOverflow, ModelError, ModelRefused
from habilis.models.contract import Finish, Progress
from habilis.models.local import prompt_cache
from habilis.models.local.backend import (
    Cancellation,
    ChatTurn,
    Chunk,
    Generation,
    GenerationRequest,
    OnChunk,
    cannot_load,
)
from habilis.models.local.cpu import core_count
from habilis.models.local.prompt_cache import FIRST_TURNS, PromptCache, common_prefix

BATCH = 16
"""Prompt tokens evaluated between two checks for cancellation. The server cannot be interrupted within a batch."""

IDLE_CACHE_MB = 512
"""Memory for the states of inactive conversations, so that two agents can alternate."""

TIMEOUT_SECONDS = 60.0
ServerChunk = dict[str, Any]


class _Server(Protocol):
    listening_address: str

    def handle_chat_completions(self, body: dict[str, Json], on_chunk: Callable[[ServerChunk], bool]) -> None: ...
    def handle_completions(self, body: dict[str, Json], on_chunk: Callable[[ServerChunk], bool]) -> None: ...


def load(path: Path, context: int, _on_chunk: OnChunk, _stop: Cancellation) -> 'XllamacppBackend':
    """Load the weights."""
    vendor: Any = import_module('xllamacpp')
    key = secrets.token_hex(16)
    cache = PromptCache(path, f'xllamacpp {metadata.version("xllamacpp")}, without flash attention')
    params = vendor.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = min(BATCH, context)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = core_count()
    params.cpuparams.poll = params.cpuparams_batch.poll = 0  # waiting threads sleep, and leave their core to others
    params.cache_ram_mib = IDLE_CACHE_MB
    # On a CPU, flash attention accumulates in half precision, and the small model makes more mistakes.
    params.flash_attn_type = vendor.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.slot_save_path = f'{prompt_cache.folder()}/'
    params.api_keys = [key]
    params.ui = False
    params.warmup = False
    params.verbosity = -1  # no log output
    try:
        server = vendor.Server(params)
    except RuntimeError as error:
        raise cannot_load(path) from error
    return XllamacppBackend(server, key, cache)


class XllamacppBackend:
    """A server with one slot."""

    def __init__(self, server: _Server, key: str, cache: PromptCache) -> None:
        self._server: _Server | None = server
        self._address = server.listening_address.removeprefix('http://')
        self._key = key
        self._prompt_cache = cache
        self._rendered: dict[str, str] = {}
        """System prompts that were in the slot, as rendered by the template."""

    def generate(self, request: GenerationRequest, on_chunk: OnChunk, stop: Cancellation) -> Generation:
        """Send the request to the server and pass its chunks on."""
        assert self._server is not None
        system = prompt_cache.system_turn(request.turns)
        is_new = len(request.turns) <= FIRST_TURNS
        just_evaluated = system is not None and self._prepare(system, is_new, on_chunk, stop)
        stream = _Stream(on_chunk, stop)
        body: dict[str, Json] = {
            'messages': [{'role': turn['role'], 'content': turn['content']} for turn in request.turns],
            'temperature': request.temperature,
            'max_tokens': request.max_tokens,
            'stop': list(request.stop),
            **request.extra,
            **_STREAMED,
        }
        self._server.handle_chat_completions(body, stream)
        generation = stream.result()
        return replace(generation, cached_tokens=0) if just_evaluated else generation

    def close(self) -> None:
        """Drop the server, which ends its threads and frees its memory."""
        self._server = None

    def _prepare(self, system: ChatTurn, is_new: bool, on_chunk: OnChunk, stop: Cancellation) -> bool:
        """Put the evaluated system prompt into the slot: from disk, or evaluate and cache it (True).

        A new conversation starts from exactly that state (see `FIRST_TURNS`). Later the server manages its own cache.
        """
        known = self._rendered.get(system['content'])
        if known is not None and not is_new:
            return False
        text = known or common_prefix(self._render(system, 'a'), self._render(system, 'b'))
        if not text:
            return False
        if found := self._prompt_cache.find(text):
            if self._slot('restore', found.name):
                self._rendered[system['content']] = text
                return False
            found.unlink(missing_ok=True)
        if self._evaluate(text, on_chunk, stop):
            draft = self._prompt_cache.draft(text)
            if self._slot('save', draft.name):
                self._prompt_cache.keep(text, draft)
            self._rendered[system['content']] = text
        return True

    def _render(self, system: ChatTurn, user: str) -> str:
        turns: list[Json] = [
            {'role': 'system', 'content': system['content']},
            {'role': 'user', 'content': user},
        ]
        match self._post('/apply-template', {'messages': turns}):
            case {'prompt': str(prompt)}:
                return prompt
            case _:
                return ''  # the template refuses a system prompt; the request itself reports it

    def _evaluate(self, text: str, on_chunk: OnChunk, stop: Cancellation) -> bool:
        assert self._server is not None
        stream = _Stream(lambda chunk: on_chunk(Chunk(progress=chunk.progress)), stop)
        self._server.handle_completions({'prompt': text, 'max_tokens': 0, 'temperature': 0, **_STREAMED}, stream)
        return stream.is_complete

    def _slot(self, action: str, name: str) -> bool:
        return 'filename' in self._post(f'/slots/0?action={action}', {'filename': name})

    def _post(self, path: str, body: dict[str, Json]) -> dict[str, Json]:
        """The response, or {} on any error: these requests are optional optimizations."""
        headers = {'Authorization': f'Bearer {self._key}', 'Content-Type': 'application/json'}
        connection = http.client.HTTPConnection(self._address, timeout=TIMEOUT_SECONDS)
        try:
            connection.request('POST', path, json.dumps(body), headers)
            response = connection.getresponse()
            data = response.read()
            return cast('dict[str, Json]', json.loads(data)) if response.status == 200 else {}
        except (OSError, http.client.HTTPException, ValueError):
            return {}
        finally:
            connection.close()


_STREAMED: dict[str, Json] = {
    'stream': True,
    'stream_options': {'include_usage': True},
    'return_progress': True,
    'cache_prompt': True,
}
_FINISHES: dict[str, Finish] = {'stop': 'stop', 'length': 'length'}


class _Stream:
    """Receives chunks from the server, which swallows exceptions, so errors are stored."""

    def __init__(self, on_chunk: OnChunk, stop: Cancellation) -> None:
        self._show = on_chunk
        self._stop = stop
        self._error: ServerChunk | None = None
        self._finish: str | None = None
        self._usage: ServerChunk = {}

    def __call__(self, chunk: ServerChunk) -> bool:
        """Process a chunk. True tells the server to stop."""
        if 'error' in chunk:
            self._error = chunk['error']
            return True
        if progress := chunk.get('prompt_progress'):
            done, total = int(progress['processed']), int(progress['total'])
            self._show(Chunk(progress=Progress(phase='reading', done=done, total=total)))
        for choice in chunk.get('choices') or ():
            delta: ServerChunk = choice.get('delta') or {}
            self._finish = choice.get('finish_reason') or self._finish
            self._show(Chunk(text=delta.get('content') or '', thinking=delta.get('reasoning_content') or ''))
        self._usage = chunk.get('usage') or self._usage
        return self._stop.is_set()

    @property
    def is_complete(self) -> bool:
        """Whether the generation was complete."""
        return self._error is None and self._finish is not None

    def result(self) -> Generation:
        """The result. Raises the error that the server reported."""
        if self._error is not None:
            raise _translate_error(self._error)
        details: ServerChunk = self._usage.get('prompt_tokens_details') or {}
        return Generation(
            finish=_FINISHES.get(self._finish or '', 'other'),
            input_tokens=self._usage.get('prompt_tokens', 0),
            output_tokens=self._usage.get('completion_tokens', 0),
            cached_tokens=details.get('cached_tokens', 0),
        )


def _translate_error(error: ServerChunk) -> ModelError:
    message = str(error.get('message', error))
    if error.get('type') == 'exceed_context_size_error':
        return ContextOverflow(f'{message.removesuffix(", try increasing it")}; set context_tokens')
    if error.get('code') == 400:
        return ModelRefused(f'the embedded model refuses the request: {message}', status=400)
    return ModelError(f'the embedded model failed: {message}')
