"""Backend for the prebuilt llama.cpp of `engine_build.py`, which chooses code for this processor when it is loaded."""

import codecs
import contextlib
import ctypes
from collections.abc import Generator, Sequence
from pathlib import Path

from habilis.core.errors import ContextOverflow
from habilis.models.contract import Finish, Progress
from habilis.models.local import engine_build, prompt_cache
from habilis.models.local.backend import (
    ABORT_CALLBACK,
    BATCH,
    BackendUnavailable,
    Cancellation,
    ChatTurn,
    Chunk,
    Generation,
    GenerationRequest,
    LoadCancelled,
    OnChunk,
    cannot_load,
)
from habilis.models.local.chat_template import compile_template
from habilis.models.local.cpu import core_count, idle_cores
from habilis.models.local.llama_library import (
    ABORTED,
    VERSION,
    LibraryUnfit,
    LlamaLibrary,
    ProgressCallback,
    open_library,
)
from habilis.models.local.prompt_cache import FIRST_TURNS, PromptCache, common_length, common_prefix
from habilis.models.local.sampler import sampler
from habilis.models.stop_sequences import StopFilter


def load(path: Path, context: int, on_chunk: OnChunk, stop: Cancellation) -> 'PrebuiltBackend':
    """Load the weights."""
    folder = engine_build.installed()
    if folder is None:
        raise BackendUnavailable(engine_build.why_missing())
    try:
        library = open_library(folder)
    except LibraryUnfit as error:
        raise BackendUnavailable(str(error)) from error
    library.errors.clear()
    size, shown = path.stat().st_size, -1

    def report(done: float, _: object) -> bool:
        nonlocal shown
        if int(100 * done) > shown:
            shown = int(100 * done)
            on_chunk(Chunk(progress=Progress(phase='loading', done=int(done * size), total=size)))
        return not stop.is_set()

    params = library.llama_model_default_params()
    params.progress_callback = ProgressCallback(report)
    model = library.llama_model_load_from_file(bytes(path), params)
    if stop.is_set():
        if model:
            library.llama_model_free(model)
        raise LoadCancelled
    backend = PrebuiltBackend(library, model, context, path) if model else None
    if backend is None or not backend.is_ready:
        raise cannot_load(path)
    return backend


class PrebuiltBackend:
    """A llama.cpp context with one sequence."""

    def __init__(self, library: LlamaLibrary, model: int, context: int, path: Path) -> None:
        self._library = library
        self._model = model
        self._vocabulary: int = library.llama_model_get_vocab(model)
        self._prompt_cache = PromptCache(path, f'llama.cpp {VERSION}, prebuilt, without flash attention')
        self._threads = core_count()
        self._pool = self._new_pool()
        self._context = self._new_context(context)
        self._evaluated: list[int] = []
        """The tokens whose attention state is in the context."""

        template = library.llama_model_chat_template(model, None) or b''
        special = [self._piece(token, special=True).decode('utf-8', 'replace') for token in self._bos_and_eos()]
        self._bos = special[0]
        self._render = compile_template(template.decode('utf-8', 'replace'), bos=special[0], eos=special[1])

    @property
    def is_ready(self) -> bool:
        """Whether there is a context. If not, the backend is closed."""
        return bool(self._context)

    def generate(self, request: GenerationRequest, on_chunk: OnChunk, stop: Cancellation) -> Generation:
        """Evaluate the new part of the prompt, then generate."""
        self._library.llama_set_abort_callback(self._context, ABORT_CALLBACK, stop.address)
        tokens = self._tokens(self._render(request.turns))
        capacity: int = self._library.llama_n_ctx(self._context)
        if len(tokens) >= capacity:
            msg = f'the request ({len(tokens)} tokens) exceeds the context ({capacity}); set context_tokens'
            raise ContextOverflow(msg)
        reader = _PromptReader(self, tokens, on_chunk)
        system = prompt_cache.system_turn(request.turns)
        just_evaluated = system is not None and self._prepare(system, reader, is_new=len(request.turns) <= FIRST_TURNS)
        cached = 0 if just_evaluated else common_length(self._evaluated, tokens[:-1])
        finish, count = 'other', 0
        if reader.read(len(tokens)):
            finish, count = self._write(request, on_chunk, capacity)
        return Generation(finish=finish, input_tokens=len(tokens), output_tokens=count, cached_tokens=cached)

    def close(self) -> None:
        """Free the memory."""
        if self._context:
            self._library.llama_free(self._context)
        self._library.llama_model_free(self._model)
        if self._pool:
            self._library.free_threadpool(self._pool)
        self._context = 0

    def evaluate(self, tokens: Sequence[int]) -> bool:
        """Evaluate tokens that follow those in the context. False: it was cancelled."""
        threads = min(self._threads, idle_cores())
        self._library.llama_set_n_threads(self._context, threads, threads)
        array = (ctypes.c_int32 * len(tokens))(*tokens)
        status: int = self._library.llama_decode(self._context, self._library.llama_batch_get_one(array, len(tokens)))
        if status == 0:
            self._evaluated.extend(tokens)
            return True
        self.truncate(len(self._evaluated))
        if status == ABORTED:
            return False
        msg = f'llama_decode returned {status}{": " if self._library.errors else ""}{"; ".join(self._library.errors)}'
        raise RuntimeError(msg)

    def truncate(self, count: int) -> None:
        """Keep the first tokens in the context."""
        memory = self._library.llama_get_memory(self._context)
        if not self._library.llama_memory_seq_rm(memory, 0, count, -1):  # a recurrent model forgets all or nothing
            self._library.llama_memory_clear(memory, True)
            count = 0
        del self._evaluated[count:]

    @property
    def evaluated(self) -> Sequence[int]:
        """The tokens in the context."""
        return self._evaluated

    def _new_pool(self) -> int | None:
        params = self._library.ggml_threadpool_params_default(self._threads)
        params.poll = 0  # waiting threads sleep, and leave their core to others
        return self._library.new_threadpool(params)

    def _new_context(self, size: int) -> int:
        params = self._library.llama_context_default_params()
        params.n_ctx = size
        params.n_batch = params.n_ubatch = min(BATCH, size)
        params.n_threads = params.n_threads_batch = self._threads
        # On a CPU, flash attention accumulates in half precision, and the small model makes more mistakes.
        params.flash_attn_type = 0
        context: int | None = self._library.llama_init_from_model(self._model, params)
        if not context:
            self._context = 0
            self.close()
            return 0
        if self._pool:
            self._library.llama_attach_threadpool(context, self._pool, None)
        return context

    def _write(self, request: GenerationRequest, on_chunk: OnChunk, capacity: int) -> tuple[Finish, int]:
        """Generate until the model ends, a stop sequence or a limit. Returns the number of tokens, too."""
        decoder = codecs.getincrementaldecoder('utf-8')('replace')
        stops = StopFilter(request.stop)
        finish: Finish = 'length'
        count = 0
        with contextlib.closing(self._sampled(request)) as tokens:
            for token in tokens:
                if self._library.llama_vocab_is_eog(self._vocabulary, token):
                    finish = 'stop'
                    break
                count += 1
                if text := stops.feed(decoder.decode(self._piece(token))):
                    on_chunk(Chunk(text=text))
                if stops.is_done:
                    finish = 'stop'
                    break
                if count == request.max_tokens or len(self._evaluated) == capacity:
                    break
                if not self.evaluate([token]):
                    return 'other', count
        if rest := stops.feed(decoder.decode(b'', final=True)) + stops.flush():
            on_chunk(Chunk(text=rest))
        return finish, count

    def _sampled(self, request: GenerationRequest) -> Generator[int]:
        """Tokens; each must be evaluated before the next is asked for."""
        with sampler(self._library, self._vocabulary, request) as chain:
            while True:
                yield self._library.llama_sampler_sample(chain, self._context, -1)

    def _prepare(self, system: ChatTurn, reader: '_PromptReader', *, is_new: bool) -> bool:
        """Put the evaluated system prompt into the context: from memory or disk, or evaluate and cache it (True)."""
        text = common_prefix(*(self._render((system, ChatTurn(role='user', content=user))) for user in 'ab'))
        wanted = self._tokens(text)
        wanted = wanted[: common_length(wanted, reader.tokens[:-1])]
        if not wanted:
            return False
        if common_length(self._evaluated, wanted) == len(wanted):
            if is_new:  # drop tokens shared with an earlier conversation: see `FIRST_TURNS`
                self.truncate(len(wanted))
            return False
        if found := self._prompt_cache.find(text):
            if self._restore(found):
                return False
            found.unlink(missing_ok=True)
        if reader.read(len(wanted)):
            draft = self._prompt_cache.draft(text)
            if self._save(draft):
                self._prompt_cache.keep(text, draft)
        return True

    def _save(self, path: Path) -> bool:
        count = len(self._evaluated)
        tokens = (ctypes.c_int32 * count)(*self._evaluated)
        return self._library.llama_state_seq_save_file(self._context, bytes(path), 0, tokens, count) > 0

    def _restore(self, path: Path) -> bool:
        self.truncate(0)
        capacity: int = self._library.llama_n_ctx(self._context)
        tokens, count = (ctypes.c_int32 * capacity)(), ctypes.c_size_t(0)
        restored = self._library.llama_state_seq_load_file(
            self._context, bytes(path), 0, tokens, capacity, ctypes.byref(count)
        )
        self._evaluated = list(tokens[: count.value]) if restored else []
        return bool(restored)

    def _tokens(self, text: str) -> list[int]:
        add_special = not (self._bos and text.startswith(self._bos))  # most templates include the BOS token
        data = text.encode()
        tokens = (ctypes.c_int32 * (len(data) + 2))()
        count = self._library.llama_tokenize(self._vocabulary, data, len(data), tokens, len(tokens), add_special, True)
        return list(tokens[:count])

    def _piece(self, token: int, *, special: bool = False) -> bytes:
        if token < 0:
            return b''
        buffer = ctypes.create_string_buffer(256)
        count = self._library.llama_token_to_piece(self._vocabulary, token, buffer, len(buffer), 0, special)
        return buffer.raw[: max(0, count)]

    def _bos_and_eos(self) -> tuple[int, int]:
        return self._library.llama_vocab_bos(self._vocabulary), self._library.llama_vocab_eos(self._vocabulary)


class _PromptReader:
    """Evaluates a prompt in batches, and reports progress."""

    def __init__(self, backend: PrebuiltBackend, tokens: list[int], on_chunk: OnChunk) -> None:
        self._backend = backend
        self.tokens = tokens
        self._on_chunk = on_chunk

    def read(self, count: int) -> bool:
        """Evaluate the first `count` tokens, as far as they are not in the context yet. False: it was cancelled."""
        known = min(common_length(self._backend.evaluated, self.tokens[:count]), len(self.tokens) - 1)
        if known < len(self._backend.evaluated):
            self._backend.truncate(known)
            known = len(self._backend.evaluated)
        self._report(known)
        for start in range(known, count, BATCH):
            if not self._backend.evaluate(self.tokens[start : min(start + BATCH, count)]):
                return False
            self._report(min(start + BATCH, count))
        return True

    def _report(self, done: int) -> None:
        self._on_chunk(Chunk(progress=Progress(phase='reading', done=done, total=len(self.tokens))))
