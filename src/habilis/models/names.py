"""Names of models: `provider:model`, and what people write instead of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from habilis.core.errors import ModelNotFound
from habilis.models.providers import OPENAI_COMPATIBLE, PROVIDERS


@dataclass(frozen=True, kw_only=True)
class ModelName:
    """A name taken apart."""

    provider: str
    model: str
    """What the provider calls it; it may hold colons and slashes itself."""

    def __str__(self) -> str:
        return f'{self.provider}:{self.model}'


def parse_name(text: str, *, base_url: str | None = None, more: Iterable[str] = ()) -> ModelName:
    """Take a name apart: `ollama:llama3`, `ollama/llama3`, or any name at all if there is a `base_url`.

    With a `base_url` a slash belongs to the model's own name (`openai/gpt-oss-20b` is one of Hugging Face), except
    after the providers that people run themselves. `more` are providers that the caller knows beside the engine's.
    Raises `ModelNotFound`, naming what could have been meant.
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
        msg = f'the name of a model is missing after {provider!r}: write {provider}:NAME'
        raise ModelNotFound(msg)
    return ModelName(provider=provider, model=model)


def _is_own_server(provider: str) -> bool:
    return provider in PROVIDERS and PROVIDERS[provider].own_server


def _advice(text: str, known: set[str]) -> str:
    if not text:
        return 'no model is named: write provider:model, for instance ollama:llama3.2'
    start = text.replace('/', ':').partition(':')[0].strip().lower()
    nearest = get_close_matches(start, sorted(known), n=1, cutoff=0.6)
    hint = f'did you mean {nearest[0]!r}? ' if nearest else ''
    shown = text if len(text) <= 80 else f'{text[:80]}…'
    return (
        f'no provider is known for the model {shown!r}: {hint}Write provider:model with one of '
        f'{", ".join(sorted(known))}; or give the base_url of an OpenAI-compatible server'
    )
