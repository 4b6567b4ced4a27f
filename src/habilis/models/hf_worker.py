"""Loading and generation of Hugging Face models, on the thread of `hf.py`. The only module that needs `torch`.

`transformers` is imported by name and typed by the protocols below, so that type checks work without it.
"""

import importlib.util
import os
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast
from urllib.parse import urlsplit
from urllib.request import getproxies

from habilis.core.codec import Json
from habilis.core.errors import ContextOverflow, ModelError, ModelNotFound, ModelRefused
from habilis.models.config import ModelConfig
from habilis.models.contract import Finish, Message, Options

_REPLY_TOKENS = 1024
"""Default maximum length of one reply."""

_HUB = 'https://huggingface.co'
_HUB_NAME = re.compile(r'[\w.-]+(?:/[\w.-]+)?')
_ADVICE = 'Use the path of a model folder, or the name of a model on the hub.'
_CONNECT_SECONDS = 5.0
_TRUE = frozenset({'1', 'ON', 'YES', 'TRUE'})
_OWN_OPTIONS = frozenset({'device', 'load_in_8bit'})
_SPEAKERS = {'system': 'System', 'user': 'User', 'assistant': 'Assistant'}

Turn = dict[str, str]
"""`role` and `content`, as chat templates expect them."""


class _Ids(Protocol):
    """A tensor of token ids with one row."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def to(self, device: str) -> '_Ids': ...
    def tolist(self) -> list[list[int]]: ...


class _Tokenizer(Protocol):
    chat_template: str | None
    eos_token_id: int | None
    pad_token_id: int | None

    def __call__(self, text: str, *, return_tensors: str, add_special_tokens: bool) -> Mapping[str, _Ids]: ...
    def apply_chat_template(self, conversation: list[Turn], *, tokenize: bool, add_generation_prompt: bool) -> str: ...


class _Network(Protocol):
    config: object
    device: str

    def eval(self) -> object: ...
    def to(self, device: str) -> '_Network': ...
    def generate(self, **options: object) -> _Ids: ...


@dataclass(frozen=True, kw_only=True)
class Generated:
    """Result of a generation, without its text, which was streamed."""

    input_tokens: int
    output_tokens: int
    finish: Finish


def load(config: ModelConfig) -> 'Loaded':
    """Load the model from a folder, the local cache or the hub. May take minutes."""
    is_on_hub = _HUB_NAME.fullmatch(config.model_name) and not Path(config.model_name).is_dir()
    unreachable = _unreachable_hub() if is_on_hub else None
    offline = unreachable is not None  # the library would retry for more than a minute
    if offline and not _is_cached(config.model_name):  # told before `transformers` is imported, which takes seconds
        msg = f'cannot load {config.model}: {unreachable}. {_ADVICE}'
        raise ModelNotFound(msg)
    transformers = import_module('transformers')
    device = _device(config)
    more = _eight_bit(config, transformers) if config.extra.get('load_in_8bit') else {}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(config.model_name, local_files_only=offline)
        network = transformers.AutoModelForCausalLM.from_pretrained(config.model_name, local_files_only=offline, **more)
    except (OSError, ValueError, ImportError) as error:
        reason = str(error).strip().partition('\n')[0].rstrip('.')
        msg = f'cannot load {config.model}: {reason}. {_ADVICE}'
        raise ModelNotFound(msg) from error
    network = cast('_Network', network)
    if not more:
        network = network.to(device)
    network.eval()
    return Loaded(config, cast('_Tokenizer', tokenizer), network)


def _unreachable_hub() -> str | None:
    """Why the hub cannot be asked for a model that is not in the cache; None if it can."""
    if os.environ.get('HF_HUB_OFFLINE', '').upper() in _TRUE:
        return 'it is not in the cache, and HF_HUB_OFFLINE is set'
    if getproxies():
        return None  # whether a proxy reaches the hub is known only by asking
    url = urlsplit(os.environ.get('HF_ENDPOINT') or _HUB)
    try:
        port = url.port or (80 if url.scheme == 'http' else 443)
        socket.create_connection((url.hostname or '', port), timeout=_CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        return f'it is not in the cache, and {url.hostname} cannot be reached ({error})'
    return None


def _is_cached(name: str) -> bool:
    try:
        return isinstance(import_module('huggingface_hub').try_to_load_from_cache(name, 'config.json'), str)
    except ValueError:  # not a name that the hub allows
        return False


class Loaded:
    """A loaded model."""

    def __init__(self, config: ModelConfig, tokenizer: _Tokenizer, network: _Network) -> None:
        self._config = config
        self._tokenizer = tokenizer
        self._network = network
        positions = getattr(network.config, 'max_position_embeddings', None)
        self.context_tokens: int | None = positions if isinstance(positions, int) and positions > 0 else None
        """Size of the context window."""

        self.template_stops: tuple[str, ...] = () if tokenizer.chat_template else ('\nUser:', '\nSystem:')
        """Without a chat template: where the model would continue with the next turn of the user."""

    def generate(
        self, messages: Sequence[Message], options: Options, on_text: Callable[[str], None], stopped: Callable[[], bool]
    ) -> Generated:
        """Generate a reply and stream it to `on_text`, until it ends or `stopped` returns true."""
        inputs = {name: ids.to(self._network.device) for name, ids in self._inputs(to_turns(messages)).items()}
        input_tokens = inputs['input_ids'].shape[-1]
        max_new_tokens = self._reply_tokens(input_tokens, options)
        listener = _TextListener(on_text, (*options.stop, *self.template_stops), stopped)
        try:
            ids = self._network.generate(
                **inputs,
                **self._sampling(options),
                max_new_tokens=max_new_tokens,
                pad_token_id=self._pad(),
                streamer=_streamer(self._tokenizer, listener.receive),
                stopping_criteria=[listener.should_stop],
            )
        except (ValueError, TypeError) as error:
            msg = f'{self._config.model} refused the request: {error}. See `extra` in its settings.'
            raise ModelRefused(msg) from error
        except RuntimeError as error:  # usually out of memory
            msg = f'{self._config.model} failed: {error}. Use a smaller model, or device cpu.'
            raise ModelError(msg) from error
        output_tokens = ids.shape[-1] - input_tokens
        truncated = (
            output_tokens >= max_new_tokens
            and not listener.has_stopped
            and ids.tolist()[0][-1] != self._tokenizer.eos_token_id
        )
        return Generated(
            input_tokens=input_tokens, output_tokens=output_tokens, finish='length' if truncated else 'stop'
        )

    def _inputs(self, turns: list[Turn]) -> Mapping[str, _Ids]:
        templated = self._tokenizer.chat_template is not None
        prompt = self._from_template(turns) if templated else plain_prompt(turns)
        inputs = self._tokenizer(prompt, return_tensors='pt', add_special_tokens=not templated)
        return {name: inputs[name] for name in ('input_ids', 'attention_mask')}

    def _from_template(self, turns: list[Turn]) -> str:
        """Apply the chat template. If it refuses a system turn, that turn is merged into the first user turn."""
        from jinja2.exceptions import TemplateError

        for attempt in (turns, _without_system(turns)):
            try:
                return self._tokenizer.apply_chat_template(attempt, tokenize=False, add_generation_prompt=True)
            except TemplateError as error:
                refusal = error
        msg = f'the chat template of {self._config.model} refuses these messages: {refusal}'
        raise ModelRefused(msg)

    def _reply_tokens(self, input_tokens: int, options: Options) -> int:
        requested = options.max_tokens or self._config.max_tokens or _REPLY_TOKENS
        limit = self._config.context_tokens or self.context_tokens
        if limit is None:
            return requested
        if input_tokens >= limit:
            msg = f'the messages have {input_tokens:,} tokens; the context window of {self._config.model} is {limit:,}'
            raise ContextOverflow(msg)
        return min(requested, limit - input_tokens)

    def _sampling(self, options: Options) -> dict[str, Json]:
        temperature = self._config.temperature_for(options)
        chosen: dict[str, Json] = {}
        if temperature is not None:
            chosen = {'do_sample': True, 'temperature': temperature} if temperature > 0 else {'do_sample': False}
        extra = {**self._config.extra, **options.extra}
        return {**chosen, **{name: value for name, value in extra.items() if name not in _OWN_OPTIONS}}

    def _pad(self) -> int | None:
        pad = self._tokenizer.pad_token_id
        return self._tokenizer.eos_token_id if pad is None else pad


class _TextListener:
    """Receives the text as it is generated, and detects stop sequences."""

    def __init__(self, on_text: Callable[[str], None], stops: Sequence[str], stopped: Callable[[], bool]) -> None:
        self._on_text = on_text
        self._stops = tuple(stop for stop in stops if stop)
        self._stopped = stopped
        self._text = ''
        self.has_stopped = False
        """Whether a stop sequence was generated."""

    def receive(self, text: str) -> None:
        self._on_text(text)
        self._text += text
        self.has_stopped = self.has_stopped or any(stop in self._text for stop in self._stops)

    def should_stop(self, *_: object, **__: object) -> bool:
        return self.has_stopped or self._stopped()


def _streamer(tokenizer: _Tokenizer, receive: Callable[[str], None]) -> object:
    """A `TextStreamer` that calls `receive` instead of printing. It holds back incomplete characters."""
    base = import_module('transformers').TextStreamer

    def on_finalized_text(_self: object, text: str, stream_end: bool = False) -> None:
        if text:
            receive(text)

    kind = type('CallbackStreamer', (base,), {'on_finalized_text': on_finalized_text})
    return kind(tokenizer, skip_prompt=True, skip_special_tokens=True)


def to_turns(messages: Sequence[Message]) -> list[Turn]:
    """Convert messages to turns that any chat template accepts: tool results become user turns, and adjacent turns of
    one role are merged.
    """
    turns: list[Turn] = []
    for message in messages:
        role = 'user' if message.role == 'tool' else message.role
        content = '\n'.join([message.text, *(f'{call.name}({call.arguments})' for call in message.calls)]).strip('\n')
        if turns and turns[-1]['role'] == role:
            turns[-1]['content'] += f'\n\n{content}'
        else:
            turns.append({'role': role, 'content': content})
    return turns


def plain_prompt(turns: list[Turn]) -> str:
    """Prompt for a model without a chat template."""
    conversation = ''.join(f'{_SPEAKERS[turn["role"]]}: {turn["content"]}\n\n' for turn in turns)
    return f'{conversation}Assistant:'


def _without_system(turns: list[Turn]) -> list[Turn]:
    merged = [
        Message(role='assistant' if turn['role'] == 'assistant' else 'user', text=turn['content']) for turn in turns
    ]
    return to_turns(merged)


def _device(config: ModelConfig) -> str:
    """The device to run on; `auto` uses a GPU if there is one."""
    torch = import_module('torch')
    wanted = config.extra.get('device', 'auto')
    has_cuda = bool(torch.cuda.is_available())
    if wanted == 'auto':
        return 'cuda' if has_cuda else 'cpu'
    try:
        device = torch.device(wanted)
    except (RuntimeError, TypeError):
        msg = f'{config.model}: invalid device {wanted!r}; use auto, cpu, cuda or cuda:0'
        raise ModelError(msg) from None
    if device.type == 'cuda' and not has_cuda:
        msg = f'{config.model}: no CUDA device found; set device to auto or cpu'
        raise ModelError(msg)
    return str(wanted)


def _eight_bit(config: ModelConfig, transformers: ModuleType) -> dict[str, object]:
    missing = [name for name in ('bitsandbytes', 'accelerate') if importlib.util.find_spec(name) is None]
    if missing:
        msg = f'{config.model}: 8-bit weights need {" and ".join(missing)}: pip install {" ".join(missing)}'
        raise ImportError(msg, name=missing[0])
    return {'quantization_config': transformers.BitsAndBytesConfig(load_in_8bit=True), 'device_map': 'auto'}
