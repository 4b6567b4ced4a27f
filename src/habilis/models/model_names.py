"""Parsing of model names: `provider:model` and its variants."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from habilis.core.errors import ModelNotFound
from habilis.core.similar_names import similar_names
from habilis.models.providers import OPENAI_COMPATIBLE, PROVIDERS

_FAMILIES = (
    (r'gpt-oss', ('ollama:{}', 'openrouter:openai/{}')),
    (r'gpt|chatgpt|o\d+($|-)|text-davinci', ('openai:{}',)),
    (r'claude', ('anthropic:{}',)),
    (r'gemini', ('google:{}',)),
    (r'(open-)?(mistral|mixtral)-|codestral|ministral|magistral|devstral|pixtral', ('mistral:{}',)),
    (r'(code)?llama|qwen|qwq|gemma|phi-?\d|deepseek|mistral|mixtral|smollm|granite|codegemma', ('ollama:{}',)),
)
"""How the names of well-known models start, and how they are written with a provider."""

_HUB = 'hf'
_ON_A_HUB = ('hf:{}', 'openrouter:{}')
"""How a name with an owner, as on Hugging Face, is written with a provider."""

_FAMILY_NAMES = {'claude': 'anthropic', 'gemini': 'google', 'gpt': 'openai', 'chatgpt': 'openai'}
"""Names of models that are written in place of their provider."""


@dataclass(frozen=True, kw_only=True)
class ModelName:
    """A parsed model name."""

    provider: str
    model: str
    """The provider's own name of the model; may contain colons and slashes."""

    def __str__(self) -> str:
        return f'{self.provider}:{self.model}'


def parse_name(text: str, *, base_url: str | None = None, more: Iterable[str] = ()) -> ModelName:
    """Parse `ollama:llama3`, `ollama/llama3`, or, with a `base_url`, any name.

    With a `base_url` a slash is part of the model's own name (`openai/gpt-oss-20b` is one on Hugging Face), except
    after a provider that users run themselves; and `hf:` says only where the weights come from. `more` are providers
    beside those of the engine.
    Raises `ModelNotFound` with a suggestion.
    """
    text = text.strip()
    known = {*PROVIDERS, *more}
    before, colon, after = text.partition(':')
    if colon and (provider := before.strip().lower()) in known:
        if base_url and provider == _HUB:  # a server has the model, and nothing is loaded here
            provider = OPENAI_COMPATIBLE
        return _name(provider, after)
    before, slash, after = text.partition('/')
    if slash and before in known and (not base_url or _is_own_server(before)):
        return _name(before, after)
    if base_url:
        return _name(OPENAI_COMPATIBLE, text)
    raise ModelNotFound(_advice(text, known))


def _name(provider: str, model: str) -> ModelName:
    model = model.strip()
    if not model:
        msg = f'missing model name after {provider!r}: write {provider}:NAME'
        raise ModelNotFound(msg)
    return ModelName(provider=provider, model=model)


def _is_own_server(provider: str) -> bool:
    return provider in PROVIDERS and PROVIDERS[provider].own_server


def _advice(text: str, known: set[str]) -> str:
    if not text:
        return 'empty model name: write provider:model, for instance ollama:llama3.2'
    if suggested := suggest_names(text, known):
        return f'the model name {_shorten(text)!r} has no known provider: write {" or ".join(suggested)}'
    start = text.replace('/', ':').partition(':')[0].strip().lower()
    nearest = similar_names(start, sorted(known), n=1, cutoff=0.6)
    hint = f'did you mean {nearest[0]!r}? ' if nearest else ''
    return (
        f'unknown provider in the model name {_shorten(text)!r}: {hint}Write provider:model with one of '
        f'{", ".join(sorted(known))}; or set the base_url of an OpenAI-compatible server'
    )


def suggest_names(text: str, known: set[str]) -> list[str]:
    """How to write the name of a well-known model with its provider. Nothing if the provider is merely misspelt."""
    before, separator, after = text.replace('/', ':', 1).partition(':')
    start = before.strip().lower()
    if separator and after and start in _FAMILY_NAMES:  # `claude:opus`
        return [f'{_FAMILY_NAMES[start]}:{after}']
    if separator and similar_names(start, sorted(known), n=1, cutoff=0.75 if '/' in text else 0.88):
        return []
    if '/' in text:
        return [form.format(_shorten(text)) for form in _ON_A_HUB] if start and after else []
    forms = next((forms for pattern, forms in _FAMILIES if re.match(pattern, text, re.IGNORECASE)), ())
    return [form.format(_shorten(text)) for form in forms]


def _shorten(text: str) -> str:
    return text if len(text) <= 80 else f'{text[:80]}…'
