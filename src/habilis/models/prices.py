"""Cost of a call, from the price list in `genai-prices`. Never uses the network."""

import logging

_log = logging.getLogger(__name__)

_FREE = frozenset({'hf', 'llamacpp', 'local', 'ollama', 'scripted', 'vllm'})
"""Providers that users run themselves: tokens cost no money."""

_PRICE_LIST_IDS = {
    'anthropic': 'anthropic',
    'bedrock': 'aws',
    'google': 'google',
    'groq': 'groq',
    'mistral': 'mistral',
    'openai': 'openai',
    'openai-responses': 'openai',
    'openrouter': 'openrouter',
}
"""Our providers, and their ids in the price list."""


def cost_of(model: str, input_tokens: int = 0, output_tokens: int = 0, cached_tokens: int = 0) -> float | None:
    """Cost in US dollars of one call of `provider:model`; None if the price is unknown. Never raises.

    `cached_tokens` is the part of `input_tokens` read from the provider's prompt cache.
    """
    provider, _, name = model.partition(':')
    if provider in _FREE:
        return 0.0
    if provider not in _PRICE_LIST_IDS or not name:
        return None
    try:
        return _list_price(
            _PRICE_LIST_IDS[provider], name, input_tokens, output_tokens, min(cached_tokens, input_tokens)
        )
    except LookupError:
        return None
    except Exception as error:  # an invalid count or price must not lose a reply that is paid for
        _log.warning('no price for %s: %s', model, error)
        return None


def _list_price(provider_id: str, name: str, input_tokens: int, output_tokens: int, cached_tokens: int) -> float:
    from genai_prices import Usage, calc_price

    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens, cache_read_tokens=cached_tokens)
    return float(calc_price(usage, name, provider_id=provider_id).total_price)
