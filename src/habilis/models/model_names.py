"""Parsing of model names: `provider:model` and its variants."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from habilis.core.errors import ModelNotFound
from habilis.models.providers import OPENAI_COMPATIBLE, PROVIDERS


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
    after a provider that users run themselves. `more` are providers beside those of the engine.
    Raises `ModelNotFound` with a suggestion.
    """
    text = text.strip()
    known = {*PROVIDERS, *more}
    before, colon, after = text.partition(':')
    if colon and (provider := before.strip().lower()) in known:
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
    start = text.replace('/', ':').partition(':')[0].strip().lower()
    nearest = get_close_matches(start, sorted(known), n=1, cutoff=0.6)
    hint = f'did you mean {nearest[0]!r}? ' if nearest else ''
    shown = text if len(text) <= 80 else f'{text[:80]}…'
    return (
        f'unknown provider in the model name {shown!r}: {hint}Write provider:model with one of '
        f'{", ".join(sorted(known))}; or set the base_url of an OpenAI-compatible server'
    )
