"""llama.cpp through the package `llama-cpp-python`, which is compiled where it is installed."""

import contextlib
import ctypes
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from habilis.core.errors import ContextOverflow, ModelRefused
from habilis.models.contract import Finish
from habilis.models.local import prefixes
from habilis.models.local.prefixes import FIRST_TURNS, Prefixes, shared
from habilis.models.local.processors import cores
from habilis.models.local.runner import BATCH, Answer, Ask, Piece, Show, Turn, cannot_load

_FINISHES: dict[str | None, Finish] = {'stop': 'stop', 'length': 'length'}
_OPTIONS = frozenset(
    'top_k top_p min_p typical_p seed repeat_penalty frequency_penalty presence_penalty mirostat_mode mirostat_tau '
    'mirostat_eta'.split()
)
"""What `extra` may set. Anything else would be a `TypeError`."""

_silence: list[object] = []
"""The callback for log lines. C has it, so Python must keep it."""


def load(path: Path, context: int) -> 'LlamaCppRunner':
    """The weights in memory."""
    vendor: Any = import_module('llama_cpp')
    if not _silence:
        _silence.append(vendor.llama_log_callback(_say_nothing))
    threads = cores()
    try:
        with _output_left_alone():
            vendor.llama_log_set(_silence[0], ctypes.c_void_p(0))
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
            vendor.llama_log_set(_silence[0], ctypes.c_void_p(0))
    except (ValueError, RuntimeError, AssertionError) as error:
        raise cannot_load(path) from error
    return LlamaCppRunner(llama, vendor, Prefixes(path, f'llama-cpp-python {vendor.__version__}'))


def _say_nothing(_level: int, _text: bytes, _data: object) -> None:
    """Instead of printing."""


@contextlib.contextmanager
def _output_left_alone() -> Generator[None]:
    """To keep llama.cpp silent, the package points stdout and stderr of the whole process nowhere while it loads.

    Other threads may be writing then. The log callback keeps it silent already.
    """
    places: list[Any] = [import_module('llama_cpp.llama'), import_module('llama_cpp._internals')]
    name = 'suppress_stdout_stderr'
    before: list[Callable[..., object] | None] = [getattr(place, name, None) for place in places]

    def leave_it(**_: object) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    for place in places:
        setattr(place, name, leave_it)
    try:
        yield
    finally:
        for place, original in zip(places, before, strict=True):
            setattr(place, name, original)


class LlamaCppRunner:
    """One context with one sequence."""

    def __init__(self, llama: Any, vendor: Any, kept: Prefixes) -> None:
        self._llama = llama
        self._vendor = vendor
        self._prefixes = kept
        self._format = _formatter(llama)

    def answer(self, ask: Ask, show: Show, stop: threading.Event) -> Answer:
        """Evaluate what is new of the prompt, then generate."""
        tokens = self._tokens(self._render(ask.turns))
        if len(tokens) >= self._llama.n_ctx():
            msg = f'request ({len(tokens)} tokens) exceeds the context ({self._llama.n_ctx()}); context_tokens sets it'
            raise ContextOverflow(msg)
        system = prefixes.beginning(ask.turns)
        begins = len(ask.turns) <= FIRST_TURNS
        just_evaluated = system is not None and self._prepare(system, tokens, begins, show, stop)
        cached = self._evaluate(tokens[:-1], show, stop)
        if just_evaluated:
            cached = 0
        if stop.is_set():
            return Answer(finish='other', input_tokens=len(tokens), output_tokens=0, cached_tokens=cached)
        finish: Finish = 'other'
        with contextlib.closing(self._generate(tokens, ask)) as chunks:
            for chunk in chunks:
                [choice] = chunk['choices']
                finish = _FINISHES.get(choice['finish_reason'], 'other')
                show(Piece(text=choice['text']))
                if stop.is_set():
                    break
        written = self._llama.n_tokens - len(tokens) + 1  # the last one was drawn, but not evaluated
        return Answer(finish=finish, input_tokens=len(tokens), output_tokens=max(0, written), cached_tokens=cached)

    def close(self) -> None:
        """Free the memory."""
        self._llama.close()

    def _generate(self, tokens: list[int], ask: Ask) -> Any:
        extra: dict[str, Any] = {name: value for name, value in ask.extra.items() if name in _OPTIONS}
        return self._llama.create_completion(
            prompt=tokens,
            stream=True,
            temperature=ask.temperature,
            max_tokens=ask.max_tokens,
            stop=list(ask.stop),
            **extra,
        )

    def _render(self, turns: Sequence[Turn]) -> str:
        try:
            return self._format(messages=[dict(turn) for turn in turns]).prompt
        except Exception as error:  # the template is a program of the model's makers
            msg = f"the embedded model's chat template refuses the messages: {error}"
            raise ModelRefused(msg) from error

    def _tokens(self, text: str) -> list[int]:
        # Most templates write the mark of the beginning themselves.
        bos = self._llama.detokenize([self._llama.token_bos()], special=True) if self._llama.token_bos() >= 0 else b''
        data = text.encode()
        return list(self._llama.tokenize(data, add_bos=not (bos and data.startswith(bos)), special=True))

    def _evaluate(self, tokens: list[int], show: Show, stop: threading.Event) -> int:
        """Have exactly these tokens in the context. Returns how many were there."""
        llama = self._llama
        known = _alike(llama.input_ids[: llama.n_tokens].tolist(), tokens)
        llama.n_tokens = known  # whatever comes after is forgotten by the next evaluation
        for start in range(known, len(tokens), BATCH):
            if stop.is_set():
                break
            llama.eval(tokens[start : start + BATCH])
            show(Piece())
        return known

    def _prepare(self, system: Turn, tokens: list[int], begins: bool, show: Show, stop: threading.Event) -> bool:
        """Have the evaluated system prompt in the context: from memory, from disk, or evaluated now (True) and kept."""
        text = shared(*(self._render((system, Turn(role='user', content=user))) for user in 'ab'))
        wanted = self._tokens(text)
        wanted = wanted[: _alike(wanted, tokens[:-1])]
        llama = self._llama
        if not wanted:
            return False
        if _alike(llama.input_ids[: llama.n_tokens].tolist(), wanted) == len(wanted):
            if begins:  # what another conversation said alike is forgotten: see `FIRST_TURNS`
                llama.n_tokens = len(wanted)
            return False
        if found := self._prefixes.find(text):
            if self._restore(found):
                return False
            found.unlink(missing_ok=True)
        self._evaluate(wanted, show, stop)
        if llama.n_tokens == len(wanted):
            draft = self._prefixes.draft(text)
            if self._save(draft):
                self._prefixes.keep(text, draft)
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


def _formatter(llama: Any) -> Any:
    """The chat template of the weights; the plainest one there is if they have none."""
    chat: Any = import_module('llama_cpp.llama_chat_format')
    template = llama.metadata.get('tokenizer.chat_template') or _PLAIN_TEMPLATE

    def text(token: int) -> str:
        return llama.detokenize([token], special=True).decode('utf-8', 'replace') if token >= 0 else ''

    return chat.Jinja2ChatFormatter(
        template=template, eos_token=text(llama.token_eos()), bos_token=text(llama.token_bos())
    )


_PLAIN_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def _alike(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two sequences begin with alike."""
    pairs: Iterator[tuple[int, int]] = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
