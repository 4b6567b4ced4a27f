"""What runs on the thread of a Hugging Face model: loading, prompts, tokens. The only module that needs `torch`.

`transformers` is reached by name and through the protocols below, so that this file is checked with or without it.
"""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Protocol, cast

from habilis.core.codec import Json
from habilis.core.errors import ContextOverflow, ModelError, ModelNotFound, ModelRefused
from habilis.models.config import ModelConfig
from habilis.models.contract import Finish, Message, Options

_REPLY_TOKENS = 1024
"""Of one reply, where neither the settings nor the request say how many."""

_OWN_OPTIONS = frozenset({'device', 'load_in_8bit'})
_SPEAKERS = {'system': 'System', 'user': 'User', 'assistant': 'Assistant'}

Turn = dict[str, str]
"""`role` and `content`, as chat templates want them."""


class _Ids(Protocol):
    """A tensor of token numbers, one row."""

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
    """How a generation went. Its text was told bit by bit."""

    input_tokens: int
    output_tokens: int
    finish: Finish


def load(config: ModelConfig) -> 'Loaded':
    """Bring the model into memory, from a folder, the local cache or the hub. May take minutes."""
    transformers = import_module('transformers')
    device = _device(config)
    more = _eight_bit(config, transformers) if config.extra.get('load_in_8bit') else {}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(config.model_name)
        network = transformers.AutoModelForCausalLM.from_pretrained(config.model_name, **more)
    except (OSError, ValueError, ImportError) as error:
        reason = str(error).strip().partition('\n')[0]
        msg = f'cannot load {config.model}: {reason}. Name a folder with a model, or a model of the hub.'
        raise ModelNotFound(msg) from error
    network = cast('_Network', network)
    if not more:
        network = network.to(device)
    network.eval()
    return Loaded(config, cast('_Tokenizer', tokenizer), network)


class Loaded:
    """A model in memory."""

    def __init__(self, config: ModelConfig, tokenizer: _Tokenizer, network: _Network) -> None:
        self._config = config
        self._tokenizer = tokenizer
        self._network = network
        positions = getattr(network.config, 'max_position_embeddings', None)
        self.context_tokens: int | None = positions if isinstance(positions, int) and positions > 0 else None
        """How much it can read and write together."""

        self.own_stops: tuple[str, ...] = () if tokenizer.chat_template else ('\nUser:', '\nSystem:')
        """With the plain template, where the model would go on with the other side's words."""

    def generate(
        self, messages: Sequence[Message], options: Options, say: Callable[[str], None], stopped: Callable[[], bool]
    ) -> Generated:
        """Say a reply bit by bit, until it ends or `stopped` is true."""
        inputs = {name: ids.to(self._network.device) for name, ids in self._inputs(turns_of(messages)).items()}
        read = inputs['input_ids'].shape[-1]
        room = self._room(read, options)
        listener = _Listener(say, (*options.stop, *self.own_stops), stopped)
        try:
            ids = self._network.generate(
                **inputs,
                **self._sampling(options),
                max_new_tokens=room,
                pad_token_id=self._pad(),
                streamer=_streamer(self._tokenizer, listener.hear),
                stopping_criteria=[listener.is_over],
            )
        except (ValueError, TypeError) as error:
            msg = f'{self._config.model} refused the request: {error}. See `extra` in its settings.'
            raise ModelRefused(msg) from error
        except RuntimeError as error:  # no memory, as a rule
            msg = f'{self._config.model} could not run: {error}. Take a smaller model, or device cpu.'
            raise ModelError(msg) from error
        written = ids.shape[-1] - read
        cut = written >= room and not listener.over and ids.tolist()[0][-1] != self._tokenizer.eos_token_id
        return Generated(input_tokens=read, output_tokens=written, finish='length' if cut else 'stop')

    def _inputs(self, turns: list[Turn]) -> Mapping[str, _Ids]:
        templated = self._tokenizer.chat_template is not None
        prompt = self._from_template(turns) if templated else plain_prompt(turns)
        inputs = self._tokenizer(prompt, return_tensors='pt', add_special_tokens=not templated)
        return {name: inputs[name] for name in ('input_ids', 'attention_mask')}

    def _from_template(self, turns: list[Turn]) -> str:
        """Some templates refuse a system turn: it then becomes the begin of the first turn of the user."""
        from jinja2.exceptions import TemplateError

        for attempt in (turns, _without_system(turns)):
            try:
                return self._tokenizer.apply_chat_template(attempt, tokenize=False, add_generation_prompt=True)
            except TemplateError as error:
                refusal = error
        msg = f'the chat template of {self._config.model} does not take these messages: {refusal}'
        raise ModelRefused(msg)

    def _room(self, read: int, options: Options) -> int:
        wanted = options.max_tokens or self._config.max_tokens or _REPLY_TOKENS
        limit = self._config.context_tokens or self.context_tokens
        if limit is None:
            return wanted
        if read >= limit:
            msg = f'the messages are {read:,} tokens, and {self._config.model} reads at most {limit:,}'
            raise ContextOverflow(msg)
        return min(wanted, limit - read)

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


class _Listener:
    """Hears the text as it comes, and knows when it is over."""

    def __init__(self, say: Callable[[str], None], stops: Sequence[str], stopped: Callable[[], bool]) -> None:
        self._say = say
        self._stops = tuple(stop for stop in stops if stop)
        self._stopped = stopped
        self._heard = ''
        self.over = False
        """A stop word came."""

    def hear(self, text: str) -> None:
        self._say(text)
        self._heard += text
        self.over = self.over or any(stop in self._heard for stop in self._stops)

    def is_over(self, *_: object, **__: object) -> bool:
        return self.over or self._stopped()


def _streamer(tokenizer: _Tokenizer, hear: Callable[[str], None]) -> object:
    """A streamer of `transformers` that tells `hear` instead of printing. It holds back halves of characters."""
    base = import_module('transformers').TextStreamer

    def on_finalized_text(_self: object, text: str, stream_end: bool = False) -> None:
        if text:
            hear(text)

    kind = type('ToldStreamer', (base,), {'on_finalized_text': on_finalized_text})
    return kind(tokenizer, skip_prompt=True, skip_special_tokens=True)


def turns_of(messages: Sequence[Message]) -> list[Turn]:
    """The messages as turns that any chat template takes: what a tool said comes from the user, and turns of the same
    role are one.
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
    """For a model with no chat template."""
    said = ''.join(f'{_SPEAKERS[turn["role"]]}: {turn["content"]}\n\n' for turn in turns)
    return f'{said}Assistant:'


def _without_system(turns: list[Turn]) -> list[Turn]:
    folded = [
        Message(role='assistant' if turn['role'] == 'assistant' else 'user', text=turn['content']) for turn in turns
    ]
    return turns_of(folded)


def _device(config: ModelConfig) -> str:
    """The device to run on; `auto` takes a GPU if there is one."""
    torch = import_module('torch')
    wanted = config.extra.get('device', 'auto')
    has_cuda = bool(torch.cuda.is_available())
    if wanted == 'auto':
        return 'cuda' if has_cuda else 'cpu'
    try:
        device = torch.device(wanted)
    except (RuntimeError, TypeError):
        msg = f'{config.model}: {wanted!r} is no device; take auto, cpu, cuda or cuda:0'
        raise ModelError(msg) from None
    if device.type == 'cuda' and not has_cuda:
        msg = f'{config.model}: there is no CUDA device here; set device to auto or cpu'
        raise ModelError(msg)
    return str(wanted)


def _eight_bit(config: ModelConfig, transformers: ModuleType) -> dict[str, object]:
    missing = [name for name in ('bitsandbytes', 'accelerate') if importlib.util.find_spec(name) is None]
    if missing:
        msg = f'{config.model}: 8-bit weights need {" and ".join(missing)}: pip install {" ".join(missing)}'
        raise ImportError(msg, name=missing[0])
    return {'quantization_config': transformers.BitsAndBytesConfig(load_in_8bit=True), 'device_map': 'auto'}
