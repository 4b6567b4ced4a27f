"""The choice of the next token, by llama.cpp."""

import contextlib
from collections.abc import Generator, Mapping

from habilis.core.codec import Json
from habilis.core.errors import ModelRefused
from habilis.models.local.backend import GenerationRequest
from habilis.models.local.llama_library import LlamaLibrary

RANDOM_SEED = 0xFFFFFFFF
PENALTY_TOKENS = 64
"""How many of the last tokens count as repetition."""


@contextlib.contextmanager
def sampler(library: LlamaLibrary, vocabulary: int, request: GenerationRequest) -> Generator[int]:
    """A chain of samplers for one request, with the defaults of llama.cpp's server."""
    chain = library.llama_sampler_chain_init(library.llama_sampler_chain_default_params())
    try:
        for link in _links(library, vocabulary, request):
            if not link:
                msg = 'the embedded model refuses the grammar: it is not valid GBNF'
                raise ModelRefused(msg, status=400)
            library.llama_sampler_chain_add(chain, link)
        yield chain
    finally:
        library.llama_sampler_free(chain)


def _links(library: LlamaLibrary, vocabulary: int, request: GenerationRequest) -> Generator[int | None]:
    extra = request.extra
    if grammar := extra.get('grammar'):
        yield library.llama_sampler_init_grammar(vocabulary, str(grammar).encode(), b'root')
    repeat, frequency, presence = (
        _number(extra, 'repeat_penalty', 1.0),
        _number(extra, 'frequency_penalty', 0.0),
        _number(extra, 'presence_penalty', 0.0),
    )
    if (repeat, frequency, presence) != (1.0, 0.0, 0.0):
        size = library.llama_vocab_n_tokens(vocabulary)
        yield library.llama_sampler_init_penalties(size, PENALTY_TOKENS, repeat, frequency, presence)
    if request.temperature <= 0:
        yield library.llama_sampler_init_greedy()
        return
    yield library.llama_sampler_init_top_k(int(_number(extra, 'top_k', 40)))
    yield library.llama_sampler_init_typical(_number(extra, 'typical_p', 1.0), 1)
    yield library.llama_sampler_init_top_p(_number(extra, 'top_p', 0.95), 1)
    yield library.llama_sampler_init_min_p(_number(extra, 'min_p', 0.05), 1)
    yield library.llama_sampler_init_temp(request.temperature)
    yield library.llama_sampler_init_dist(int(_number(extra, 'seed', RANDOM_SEED)) & RANDOM_SEED)


def _number(extra: Mapping[str, Json], name: str, default: float) -> float:
    value = extra.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        msg = f'{name} must be a number'
        raise ModelRefused(msg, status=400)
    return value
