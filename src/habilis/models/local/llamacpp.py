"""Backend for the package `llama-cpp-python`, which is compiled on the machine where it is installed."""

import contextlib
import ctypes
from collections.abc import Callable, Generator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from habilis.core.errors import ContextOverflow, ModelRefused
from habilis.models.contract import Finish, Progress
from habilis.models.local import prompt_cache
from habilis.models.local.backend import (
    ABORT_CALLBACK,
    BATCH,
    Cancellation,
    ChatTurn,
    Chunk,
    Generation,
    GenerationRequest,
    OnChunk,
    cannot_load,
)
from habilis.models.local.cpu import core_count, idle_cores
from habilis.models.local.prompt_cache import FIRST_TURNS, PromptCache, common_length, common_prefix

_FINISHES: dict[str | None, Finish] = {'stop': 'stop', 'length': 'length'}
_OPTIONS = frozenset(
    'top_k top_p min_p typical_p seed repeat_penalty frequency_penalty presence_penalty mirostat_mode mirostat_tau '
    'mirostat_eta'.split()
)
"""Accepted fields of `extra`. Others would raise a `TypeError`."""

_log_callbacks: list[object] = []
"""The log callback. C code holds a pointer to it, so Python must keep it alive."""


def load(path: Path, context: int, _on_chunk: OnChunk, _stop: Cancellation) -> 'LlamaCppBackend':
    """Load the weights."""
    vendor: Any = import_module('llama_cpp')
    if not _log_callbacks:
        _log_callbacks.append(vendor.llama_log_callback(_discard_log))
    threads = core_count()
    try:
        with _keep_output():
            vendor.llama_log_set(_log_callbacks[0], ctypes.c_void_p(0))
            llama = vendor.Llama(
                model_path=str(path),
                n_ctx=context,
                n_batch=min(BATCH, context),
                n_ubatch=min(BATCH, context),
                n_threads=threads,
                n_threads_batch=threads,
                n_gpu_layers=-1,
                verbose=False,
            )
            vendor.llama_log_set(_log_callbacks[0], ctypes.c_void_p(0))
    except (ValueError, RuntimeError, AssertionError) as error:
        raise cannot_load(path) from error
    return LlamaCppBackend(llama, vendor, PromptCache(path, f'llama-cpp-python {vendor.__version__}'))


def _discard_log(_level: int, _text: bytes, _data: object) -> None:
    """Log callback that prints nothing."""


@contextlib.contextmanager
def _keep_output() -> Generator[None]:
    """Disable the redirection of stdout and stderr that the package applies to the whole process while loading.

    It would swallow the output of other threads, and the log callback already silences llama.cpp.
    """
    modules: list[Any] = [import_module('llama_cpp.llama'), import_module('llama_cpp._internals')]
    name = 'suppress_stdout_stderr'
    originals: list[Callable[..., object] | None] = [getattr(module, name, None) for module in modules]

    def do_nothing(**_: object) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    for module in modules:
        setattr(module, name, do_nothing)
    try:
        yield
    finally:
        for module, original in zip(modules, originals, strict=True):
            setattr(module, name, original)


class LlamaCppBackend:
    """A llama.cpp context with one sequence."""

    def __init__(self, llama: Any, vendor: Any, cache: PromptCache) -> None:
        self._llama = llama
        self._vendor = vendor
        self._prompt_cache = cache
        self._threads = core_count()
        self._format = _formatter(llama)
        self._abort_callback = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(ABORT_CALLBACK)

    def generate(self, request: GenerationRequest, on_chunk: OnChunk, stop: Cancellation) -> Generation:
        """Evaluate the new part of the prompt, then generate."""
        tokens = self._tokens(self._render(request.turns))
        if len(tokens) >= self._llama.n_ctx():
            msg = f'the request ({len(tokens)} tokens) exceeds the context ({self._llama.n_ctx()}); set context_tokens'
            raise ContextOverflow(msg)
        self._vendor.llama_set_abort_callback(self._llama.ctx, self._abort_callback, stop.address)
        system = prompt_cache.system_turn(request.turns)
        is_new = len(request.turns) <= FIRST_TURNS
        just_evaluated = system is not None and self._prepare(system, tokens, is_new, on_chunk, stop)
        cached = self._evaluate(tokens[:-1], on_chunk, stop)
        if just_evaluated:
            cached = 0
        finish: Finish = 'other'
        if not stop.is_set():
            with _may_abort(stop), contextlib.closing(self._generate(tokens, request)) as chunks:
                for chunk in chunks:
                    [choice] = chunk['choices']
                    finish = _FINISHES.get(choice['finish_reason'], 'other')
                    on_chunk(Chunk(text=choice['text']))
                    self._use_idle_cores()
                    if stop.is_set():
                        break
        output_tokens = self._llama.n_tokens - len(tokens) + 1  # the last one was sampled, but not evaluated
        return Generation(
            finish=finish, input_tokens=len(tokens), output_tokens=max(0, output_tokens), cached_tokens=cached
        )

    def close(self) -> None:
        """Free the memory."""
        self._llama.close()

    def _use_idle_cores(self) -> None:
        threads = min(self._threads, idle_cores())
        self._vendor.llama_set_n_threads(self._llama.ctx, threads, threads)

    def _generate(self, tokens: list[int], request: GenerationRequest) -> Any:
        extra: dict[str, Any] = {name: value for name, value in request.extra.items() if name in _OPTIONS}
        return self._llama.create_completion(
            prompt=tokens,
            stream=True,
            temperature=request.temperature,
            max_tokens=request.max_tokens,
            stop=list(request.stop),
            **extra,
        )

    def _render(self, turns: Sequence[ChatTurn]) -> str:
        try:
            return self._format(messages=[dict(turn) for turn in turns]).prompt
        except Exception as error:  # the template comes with the weights and may raise anything
            msg = f"the embedded model's chat template refuses the messages: {error}"
            raise ModelRefused(msg) from error

    def _tokens(self, text: str) -> list[int]:
        # Most templates include the BOS token.
        bos = self._llama.detokenize([self._llama.token_bos()], special=True) if self._llama.token_bos() >= 0 else b''
        data = text.encode()
        return list(self._llama.tokenize(data, add_bos=not (bos and data.startswith(bos)), special=True))

    def _evaluate(self, tokens: list[int], on_chunk: OnChunk, stop: Cancellation) -> int:
        """Evaluate the tokens that are not in the context yet. Returns how many were there."""
        llama = self._llama
        known = common_length(llama.input_ids[: llama.n_tokens].tolist(), tokens)
        llama.n_tokens = known  # the next evaluation overwrites the rest
        for start in range(known, len(tokens), BATCH):
            if stop.is_set():
                break
            self._use_idle_cores()
            with _may_abort(stop):
                llama.eval(tokens[start : start + BATCH])
            on_chunk(Chunk(progress=Progress(phase='reading', done=llama.n_tokens, total=len(tokens) + 1)))
        return known

    def _prepare(
        self, system: ChatTurn, tokens: list[int], is_new: bool, on_chunk: OnChunk, stop: Cancellation
    ) -> bool:
        """Put the evaluated system prompt into the context: from memory or disk, or evaluate and cache it (True)."""
        text = common_prefix(*(self._render((system, ChatTurn(role='user', content=user))) for user in 'ab'))
        wanted = self._tokens(text)
        wanted = wanted[: common_length(wanted, tokens[:-1])]
        llama = self._llama
        if not wanted:
            return False
        if common_length(llama.input_ids[: llama.n_tokens].tolist(), wanted) == len(wanted):
            if is_new:  # drop tokens shared with an earlier conversation: see `FIRST_TURNS`
                llama.n_tokens = len(wanted)
            return False
        if found := self._prompt_cache.find(text):
            if self._restore(found):
                return False
            found.unlink(missing_ok=True)
        self._evaluate(wanted, on_chunk, stop)
        if llama.n_tokens == len(wanted):
            draft = self._prompt_cache.draft(text)
            if self._save(draft):
                self._prompt_cache.keep(text, draft)
        return True

    def _save(self, path: Path) -> bool:
        count = self._llama.n_tokens
        tokens = (ctypes.c_int32 * count)(*self._llama.input_ids[:count].tolist())
        self._vendor.llama_memory_seq_rm(self._vendor.llama_get_memory(self._llama.ctx), 0, count, -1)
        return self._vendor.llama_state_seq_save_file(self._llama.ctx, bytes(path), 0, tokens, count) > 0

    def _restore(self, path: Path) -> bool:
        llama = self._llama
        llama.reset()
        capacity = llama.n_ctx()
        tokens, count = (ctypes.c_int32 * capacity)(), ctypes.c_size_t(0)
        read = self._vendor.llama_state_seq_load_file(llama.ctx, bytes(path), 0, tokens, capacity, ctypes.byref(count))
        if not read:
            return False
        llama.input_ids[: count.value] = tokens[: count.value]
        llama.n_tokens = count.value
        return True


@contextlib.contextmanager
def _may_abort(stop: Cancellation) -> Generator[None]:
    """Ignore the error of an evaluation that was cancelled."""
    try:
        yield
    except RuntimeError:
        if not stop.is_set():
            raise


def _formatter(llama: Any) -> Any:
    """The chat template of the weights, or ChatML if they have none."""
    chat: Any = import_module('llama_cpp.llama_chat_format')
    template = llama.metadata.get('tokenizer.chat_template') or _CHATML_TEMPLATE

    def text(token: int) -> str:
        return llama.detokenize([token], special=True).decode('utf-8', 'replace') if token >= 0 else ''

    return chat.Jinja2ChatFormatter(
        template=template, eos_token=text(llama.token_eos()), bos_token=text(llama.token_bos())
    )


_CHATML_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
