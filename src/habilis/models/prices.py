"""What a call costs, from the list of prices that comes with `genai-prices`. Never asks the network."""

import logging

_log = logging.getLogger(__name__)

_FREE = frozenset({'hf', 'llamacpp', 'local', 'ollama', 'scripted', 'vllm'})
"""They run on somebody's own machine: tokens cost time, not money."""

_SELLERS = {
    'anthropic': 'anthropic',
    'bedrock': 'aws',
    'google': 'google',
    'groq': 'groq',
    'mistral': 'mistral',
    'openai': 'openai',
    'openai-responses': 'openai',
    'openrouter': 'openrouter',
}
"""Our providers, and what the list of prices calls them."""


def cost_of(model: str, input_tokens: int = 0, output_tokens: int = 0, cached_tokens: int = 0) -> float | None:
    """US dollars for one call of `provider:model`; None where no price is known. Never raises.

    `cached_tokens` are the part of `input_tokens` that the provider read from its prompt cache.
    """
    provider, _, name = model.partition(':')
    if provider in _FREE:
        return 0.0
    if provider not in _SELLERS or not name:
        return None
    try:
        return _listed(_SELLERS[provider], name, input_tokens, output_tokens, min(cached_tokens, input_tokens))
    except LookupError:
        return None
    except Exception as error:  # a reply is paid for already: an odd count or an odd price must not lose it
        _log.warning('no price for %s: %s', model, error)
        return None


def _listed(seller: str, name: str, input_tokens: int, output_tokens: int, cached_tokens: int) -> float:
    from genai_prices import Usage, calc_price

    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens, cache_read_tokens=cached_tokens)
    return float(calc_price(usage, name, provider_id=seller).total_price)
