"""llama.cpp through the package `xllamacpp`: its server inside this process.

Requests go to the server by function call. Only the state of the slot is saved and restored over its HTTP port, for
which there is no function: the port is on loopback and wants a key that no one else knows.
"""

import http.client
import json
import secrets
import threading
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Protocol, cast

from habilis.core.codec import Json
from habilis.core.errors import ContextOverflow, ModelError, ModelRefused
from habilis.models.contract import Finish
from habilis.models.local import prefixes
from habilis.models.local.prefixes import FIRST_TURNS, Prefixes, shared
from habilis.models.local.processors import cores
from habilis.models.local.runner import BATCH, Answer, Ask, Piece, Show, Turn, cannot_load

IDLE_MB = 512
"""Memory for the states of conversations that another one has pushed out: two agents can take turns."""

SECONDS = 60.0
Chunk = dict[str, Any]


class _Server(Protocol):
    listening_address: str

    def handle_chat_completions(self, body: dict[str, Json], on_chunk: Callable[[Chunk], bool]) -> None: ...
    def handle_completions(self, body: dict[str, Json], on_chunk: Callable[[Chunk], bool]) -> None: ...


def load(path: Path, context: int) -> 'XllamacppRunner':
    """The weights in memory."""
    vendor: Any = import_module('xllamacpp')
    key = secrets.token_hex(16)
    kept = Prefixes(path, f'xllamacpp {metadata.version("xllamacpp")}, without flash attention')
    params = vendor.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = min(BATCH, context)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = cores()
    params.cache_ram_mib = IDLE_MB
    # On a processor it adds up in half precision: the small model makes more mistakes.
    params.flash_attn_type = vendor.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.slot_save_path = f'{prefixes.folder()}/'
    params.api_keys = [key]
    params.ui = False
    params.warmup = False
    params.verbosity = -1  # nothing of its log on the terminal
    try:
        server = vendor.Server(params)
    except RuntimeError as error:
        raise cannot_load(path) from error
    return XllamacppRunner(server, key, kept)


class XllamacppRunner:
    """One server with one slot."""

    def __init__(self, server: _Server, key: str, kept: Prefixes) -> None:
        self._server: _Server | None = server
        self._address = server.listening_address.removeprefix('http://')
        self._key = key
        self._prefixes = kept
        self._seen: dict[str, str] = {}
        """System prompts that were in the slot, as the template writes them."""

    def answer(self, ask: Ask, show: Show, stop: threading.Event) -> Answer:
        """Ask the server, and pass its chunks on."""
        assert self._server is not None
        system = prefixes.beginning(ask.turns)
        begins = len(ask.turns) <= FIRST_TURNS
        just_evaluated = system is not None and self._prepare(system, begins, show, stop)
        stream = _Stream(show, stop)
        body: dict[str, Json] = {
            'messages': [{'role': turn['role'], 'content': turn['content']} for turn in ask.turns],
            'temperature': ask.temperature,
            'max_tokens': ask.max_tokens,
            'stop': list(ask.stop),
            **ask.extra,
            **_STREAMED,
        }
        self._server.handle_chat_completions(body, stream)
        answer = stream.answer()
        return replace(answer, cached_tokens=0) if just_evaluated else answer

    def close(self) -> None:
        """Dropped, the server ends its threads and frees its memory."""
        self._server = None

    def _prepare(self, system: Turn, begins: bool, show: Show, stop: threading.Event) -> bool:
        """Have the evaluated system prompt in the slot: from disk, or evaluated now (True) and kept.

        Where a conversation begins, that and nothing else (see `FIRST_TURNS`). Later the server itself knows best what
        it has in memory.
        """
        known = self._seen.get(system['content'])
        if known is not None and not begins:
            return False
        text = known or shared(self._render(system, 'a'), self._render(system, 'b'))
        if not text:
            return False
        if found := self._prefixes.find(text):
            if self._slot('restore', found.name):
                self._seen[system['content']] = text
                return False
            found.unlink(missing_ok=True)
        if self._evaluate(text, show, stop):
            draft = self._prefixes.draft(text)
            if self._slot('save', draft.name):
                self._prefixes.keep(text, draft)
            self._seen[system['content']] = text
        return True

    def _render(self, system: Turn, user: str) -> str:
        turns: list[Json] = [
            {'role': 'system', 'content': system['content']},
            {'role': 'user', 'content': user},
        ]
        match self._post('/apply-template', {'messages': turns}):
            case {'prompt': str(prompt)}:
                return prompt
            case _:
                return ''  # a template that takes no system prompt; the request itself will tell

    def _evaluate(self, text: str, show: Show, stop: threading.Event) -> bool:
        assert self._server is not None
        stream = _Stream(lambda _: show(Piece()), stop)
        self._server.handle_completions({'prompt': text, 'max_tokens': 0, 'temperature': 0, **_STREAMED}, stream)
        return stream.whole

    def _slot(self, action: str, name: str) -> bool:
        return 'filename' in self._post(f'/slots/0?action={action}', {'filename': name})

    def _post(self, path: str, body: dict[str, Json]) -> dict[str, Json]:
        """The answer, or an empty one if it is an error: what is asked here only saves time."""
        headers = {'Authorization': f'Bearer {self._key}', 'Content-Type': 'application/json'}
        connection = http.client.HTTPConnection(self._address, timeout=SECONDS)
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
    """Called with each chunk by a server that swallows exceptions: what goes wrong is kept for later."""

    def __init__(self, show: Show, stop: threading.Event) -> None:
        self._show = show
        self._stop = stop
        self._error: Chunk | None = None
        self._finish: str | None = None
        self._usage: Chunk = {}

    def __call__(self, chunk: Chunk) -> bool:
        """True asks the server to stop."""
        if 'error' in chunk:
            self._error = chunk['error']
            return True
        for choice in chunk.get('choices') or ():
            delta: Chunk = choice.get('delta') or {}
            self._finish = choice.get('finish_reason') or self._finish
            self._show(Piece(text=delta.get('content') or '', thinking=delta.get('reasoning_content') or ''))
        self._usage = chunk.get('usage') or self._usage
        return self._stop.is_set()

    @property
    def whole(self) -> bool:
        """Whether it went to its end."""
        return self._error is None and self._finish is not None

    def answer(self) -> Answer:
        """What was counted. Raises what the server complained about."""
        if self._error is not None:
            raise _in_our_words(self._error)
        details: Chunk = self._usage.get('prompt_tokens_details') or {}
        return Answer(
            finish=_FINISHES.get(self._finish or '', 'other'),
            input_tokens=self._usage.get('prompt_tokens', 0),
            output_tokens=self._usage.get('completion_tokens', 0),
            cached_tokens=details.get('cached_tokens', 0),
        )


def _in_our_words(error: Chunk) -> ModelError:
    message = str(error.get('message', error))
    if error.get('type') == 'exceed_context_size_error':
        return ContextOverflow(f'{message.removesuffix(", try increasing it")}; context_tokens sets it')
    if error.get('code') == 400:
        return ModelRefused(f'the embedded model refuses the request: {message}', status=400)
    return ModelError(f'the embedded model cannot answer: {message}')
