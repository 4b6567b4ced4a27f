"""Row B4: a tiny local model answers with no network. The model is made here: random weights, a few numbers wide."""

import asyncio
import importlib.util
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import pytest

from habilis.core.codec import Json
from habilis.core.errors import ContextOverflow, ModelError, ModelNotFound, ModelRefused, ModelUnavailable
from habilis.models.config import ModelConfig
from habilis.models.contract import Delta, FunctionCall, Message, Model, Options, Reply
from habilis.models.hf import HuggingFaceModel
from tests.requirements import missing

pytestmark = pytest.mark.slow  # importing torch alone takes seconds

WORDS = 'the ship left harbour at six and only three people stood on its deck User System Assistant : ? 2 + = 4'
TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system turns') }}{% endif %}"
    "{{ m['role'] }} : {{ m['content'] }} {% endfor %}{% if add_generation_prompt %}assistant : {% endif %}"
)
ASK = [Message(role='user', text='the ship left')]
POSITIONS = 64


def make_model(folder: Path, *, template: str | None = None) -> Path:
    """A word-level tokenizer and a random network, saved as the hub would have them."""
    tokenizers, transformers, torch = (import_module(name) for name in ('tokenizers', 'transformers', 'torch'))
    words = ['[UNK]', '[END]', *dict.fromkeys(WORDS.split())]
    inner = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: number for number, word in enumerate(words)}, unk_token='[UNK]')
    )
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token='[UNK]', eos_token='[END]', chat_template=template
    )
    torch.manual_seed(0)
    shape = transformers.LlamaConfig(
        vocab_size=len(words),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=POSITIONS,
        eos_token_id=1,
        bos_token_id=1,
    )
    network = transformers.LlamaForCausalLM(shape)
    tokenizer.save_pretrained(folder)
    network.save_pretrained(folder)
    return folder


@pytest.fixture(scope='module')
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp('plain'))


@pytest.fixture(scope='module')
def templated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp('templated'), template=TEMPLATE)


@pytest.fixture(autouse=True, scope='module')
def torch() -> None:
    if importlib.util.find_spec('torch') is None:
        missing('torch')


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        msg = 'a model in this process must not use the network'
        raise AssertionError(msg)

    monkeypatch.setenv('HF_HUB_OFFLINE', '1')
    monkeypatch.setattr(socket.socket, 'connect', refuse)
    monkeypatch.setattr(socket, 'getaddrinfo', refuse)


def hide(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """As if these were not installed, and everything else were."""

    def find(name: str) -> object:
        return None if name in packages else object()

    monkeypatch.setattr(importlib.util, 'find_spec', find)


def config_of(folder: Path | str, **changes: object) -> ModelConfig:
    extra: dict[str, Json] = {'device': 'cpu', 'min_new_tokens': 12}
    return ModelConfig(model=f'hf:{folder}', temperature=0.0, max_tokens=12, extra=extra).with_changes(**changes)


@pytest.fixture
async def model(plain: Path) -> AsyncIterator[HuggingFaceModel]:
    model = HuggingFaceModel(config_of(plain))
    yield model
    await model.close()


async def test_a_tiny_model_answers_with_no_network(model: HuggingFaceModel) -> None:
    reply = await model.request(ASK)
    assert set(reply.text.split()) <= {'[UNK]', *WORDS.split()}
    assert reply.text.strip()
    assert reply.model == model.name
    assert reply.finish == 'length'
    assert (reply.usage.requests, reply.usage.output_tokens, reply.usage.cost) == (1, 12, 0.0)
    assert reply.usage.input_tokens == len('User : the ship left Assistant :'.split())
    assert reply.usage.seconds > 0


async def test_it_is_a_model_and_says_what_it_can(model: HuggingFaceModel) -> None:
    assert isinstance(model, Model)
    await model.request(ASK)
    assert (model.traits.local, model.traits.functions, model.traits.context_tokens) == (True, False, POSITIONS)


async def test_it_is_small_only_if_configured_so(plain: Path) -> None:
    for small in (True, False):
        model = HuggingFaceModel(config_of(plain, small=small))
        assert model.traits.small is small
        await model.close()


async def test_temperature_zero_gives_the_same_answer_twice(model: HuggingFaceModel) -> None:
    assert (await model.request(ASK)).text == (await model.request(ASK)).text


async def test_a_stream_comes_in_bits_that_make_the_reply(model: HuggingFaceModel) -> None:
    items = [item async for item in model.stream(ASK)]
    bits = [item.text for item in items if isinstance(item, Delta)]
    last = items[-1]
    assert isinstance(last, Reply)
    assert len(bits) > 3
    assert ''.join(bits) == last.text == (await model.request(ASK)).text


async def test_several_requests_at_once_load_the_model_once_and_all_are_answered(plain: Path) -> None:
    model = HuggingFaceModel(config_of(plain))
    replies = await asyncio.gather(*(model.request(ASK) for _ in range(4)))
    assert len({reply.text for reply in replies}) == 1
    await model.close()


async def test_a_stop_word_ends_the_reply_before_it(model: HuggingFaceModel) -> None:
    whole = (await model.request(ASK)).text
    stop = whole.split()[3]
    reply = await model.request(ASK, Options(stop=(stop,)))
    assert reply.text == whole[: whole.index(stop)]
    assert reply.finish == 'stop'
    assert reply.usage.output_tokens < 12


async def test_the_chat_template_of_the_tokenizer_is_used(templated: Path) -> None:
    model = HuggingFaceModel(config_of(templated))
    reply = await model.request(ASK)
    assert reply.usage.input_tokens == len('user : the ship left assistant :'.split())
    await model.close()


async def test_a_template_that_refuses_system_turns_gets_them_from_the_user(templated: Path) -> None:
    model = HuggingFaceModel(config_of(templated))
    reply = await model.request([Message(role='system', text='the deck'), *ASK])
    assert reply.usage.input_tokens == len('user : the deck the ship left assistant :'.split())
    await model.close()


async def test_a_template_that_refuses_everything_is_one_clear_line(tmp_path: Path) -> None:
    make_model(tmp_path, template="{{ raise_exception('never') }}")
    model = HuggingFaceModel(config_of(tmp_path))
    with pytest.raises(ModelRefused, match=r'refuses these messages: never'):
        await model.request(ASK)
    await model.close()


async def test_calls_and_what_tools_said_reach_a_model_that_knows_no_functions(model: HuggingFaceModel) -> None:
    call = FunctionCall(id='1', name='ship', arguments='six')
    talk = [*ASK, Message(role='assistant', calls=(call,)), Message(role='tool', text='deck', call_id='1')]
    expected = 'User : the ship left Assistant : ship ( six ) User : deck Assistant :'
    assert (await model.request(talk)).usage.input_tokens == len(expected.split())


async def test_a_reader_that_goes_away_stops_the_model(plain: Path) -> None:
    model = HuggingFaceModel(
        config_of(plain, max_tokens=100_000, context_tokens=200_000, extra={'min_new_tokens': 90_000})
    )
    stream = model.stream(ASK)
    assert isinstance(await anext(stream), Delta)
    await stream.aclose()
    reply = await model.request(ASK, Options(max_tokens=3, extra={'min_new_tokens': 3}))
    assert reply.usage.output_tokens == 3
    await model.close()


async def test_a_cancelled_request_stops_the_model(plain: Path) -> None:
    model = HuggingFaceModel(
        config_of(plain, max_tokens=100_000, context_tokens=200_000, extra={'min_new_tokens': 90_000})
    )
    await model.request(ASK, Options(max_tokens=3, extra={'min_new_tokens': 3}))
    task = asyncio.create_task(model.request(ASK))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await model.request(ASK, Options(max_tokens=3, extra={'min_new_tokens': 3}))).usage.output_tokens == 3
    await model.close()


async def test_a_request_that_takes_too_long_says_so(plain: Path) -> None:
    extra: dict[str, Json] = {'min_new_tokens': 90_000}
    model = HuggingFaceModel(config_of(plain, max_tokens=100_000, context_tokens=200_000, extra=extra, timeout=0.05))
    with pytest.raises(ModelUnavailable, match=r'timed out after 0.05 s'):
        await model.request(ASK)
    await model.close()


async def test_a_conversation_that_is_too_long_is_an_overflow(model: HuggingFaceModel) -> None:
    with pytest.raises(ContextOverflow, match=r'context window of .* is 64'):
        await model.request([Message(role='user', text='ship ' * POSITIONS)])


async def test_a_reply_never_goes_past_the_context(model: HuggingFaceModel) -> None:
    options = Options(max_tokens=1000, extra={'min_new_tokens': POSITIONS - 7})
    reply = await model.request(ASK, options)
    assert reply.usage.input_tokens + reply.usage.output_tokens == POSITIONS
    assert reply.finish == 'length'


async def test_an_option_that_generate_does_not_know_is_refused(model: HuggingFaceModel) -> None:
    with pytest.raises(ModelRefused, match=r'no_such_option'):
        await model.request(ASK, Options(extra={'no_such_option': 1}))


async def test_a_folder_without_a_model_says_what_to_name(tmp_path: Path) -> None:
    model = HuggingFaceModel(config_of(tmp_path / 'nothing here'))
    with pytest.raises(ModelNotFound, match=r'Use the path of a model folder, or the name of a model on the hub'):
        await model.request(ASK)
    await model.close()


async def test_a_name_that_is_not_on_this_machine_is_not_found_without_network() -> None:
    model = HuggingFaceModel(config_of('nobody/no-such-model'))
    with pytest.raises(ModelNotFound, match=r'cannot load hf:nobody/no-such-model'):
        await model.request(ASK)
    await model.close()


@pytest.mark.parametrize('offline', ['1', ''])
async def test_without_the_hub_a_name_that_is_not_in_the_cache_is_reported_at_once(
    monkeypatch: pytest.MonkeyPatch, offline: str
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        msg = 'Name or service not known'
        raise OSError(msg)

    monkeypatch.setenv('HF_HUB_OFFLINE', offline)
    monkeypatch.setattr(socket, 'create_connection', fail)
    model = HuggingFaceModel(config_of('nobody/no-such-model'))
    monkeypatch.setitem(sys.modules, 'transformers', None)  # it would retry for a minute, and is not even imported
    with pytest.raises(ModelNotFound, match=r'it is not in the cache, and (HF_HUB_OFFLINE|huggingface.co cannot be)'):
        await model.request(ASK)
    await model.close()


@pytest.mark.parametrize('device', ['toaster', 7, None, 'cuda:99'])
async def test_a_device_that_is_not_there_is_named(plain: Path, device: Json) -> None:
    model = HuggingFaceModel(config_of(plain, extra={'device': device}))
    with pytest.raises(ModelError, match=r'invalid device|no CUDA device'):
        await model.request(ASK)
    await model.close()


async def test_eight_bit_without_its_packages_says_what_to_install(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, 'bitsandbytes')
    model = HuggingFaceModel(config_of(plain, extra={'load_in_8bit': True}))
    with pytest.raises(ImportError, match=r'8-bit weights need bitsandbytes: pip install bitsandbytes'):
        await model.request(ASK)
    await model.close()


def test_without_transformers_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, 'torch', 'transformers')
    with pytest.raises(ImportError, match=r"pip install 'habilis\[hf\]'"):
        HuggingFaceModel(config_of('any'))


async def test_a_closed_model_may_be_closed_again_but_not_asked(model: HuggingFaceModel) -> None:
    await model.request(ASK)
    await model.close()
    await model.close()
    with pytest.raises(ModelError, match=r'is closed'):
        await model.request(ASK)


def test_making_the_model_imports_neither_torch_nor_transformers() -> None:
    code = (
        'import sys\nfrom habilis.models.config import ModelConfig\nfrom habilis.models.hf import HuggingFaceModel\n'
        'HuggingFaceModel(ModelConfig(model="hf:x"))\n'
        'assert not {"torch", "transformers"} & sys.modules.keys(), "imported"'
    )
    subprocess.run([sys.executable, '-c', code], check=True)
