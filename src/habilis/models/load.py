"""From a name to a model that can be asked: the one place that knows who makes which.

Each maker is imported only when a model of its kind is wanted.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Unpack

from habilis.core.errors import NoModel
from habilis.core.folders import responses_folder
from habilis.core.settings import Settings, load_settings
from habilis.models.config import ModelConfig
from habilis.models.contract import Model
from habilis.models.discover import Choice, discover
from habilis.models.registry import Overrides, Registry, name_of

_ALSO_FOR_FALLBACKS = ('temperature', 'max_tokens', 'timeout', 'retries')


def load_model(
    which: str | ModelConfig | Model | None = None,
    *,
    settings: Settings | None = None,
    registry: Registry | None = None,
    **overrides: Unpack[Overrides],
) -> Model:
    """The model of that name or alias, with retries, and with cache and fallbacks if the settings say so.

    Without a name it is the default of the settings, or else the first that `discover` finds; looking for servers then
    takes a moment, so async code may prefer to await `discover` and to load the `config` of what it found.
    Raises `ModelNotFound`, `NoModel` and `SettingsError`; an SDK that is missing is an `ImportError` that names it.
    """
    if isinstance(which, Model):
        return which
    registry = registry or Registry(settings or load_settings())
    config = registry.get(which or registry.default or _discovered(registry.settings), overrides)
    models = [_make(config, registry.settings)]
    kept = Overrides(**{name: value for name, value in overrides.items() if name in _ALSO_FOR_FALLBACKS})  # pyright: ignore[reportArgumentType]
    for name in registry.settings.fallback:
        other = registry.get(name, kept)
        if other != config:
            models.append(_make(other, registry.settings))
    if len(models) == 1:
        return models[0]
    from habilis.models.fallback import FallbackModel

    return FallbackModel(models)


def _discovered(settings: Settings) -> ModelConfig:
    """What `discover` finds, for code that cannot await: on a thread, as a loop may be running here."""
    with ThreadPoolExecutor(1) as thread:
        choice: Choice = thread.submit(lambda: asyncio.run(discover(settings))).result()
    if not choice.ready:
        msg = f'no model is there to use: {choice.reason}'
        raise NoModel(msg)
    return choice.config


def _make(config: ModelConfig, settings: Settings) -> Model:
    model = _bare(config)
    if config.retries:
        from habilis.models.retry import RetryModel

        model = RetryModel(model, retries=config.retries)
    if settings.response_cache:
        from habilis.models.cache import CachedModel

        model = CachedModel(model, responses_folder(), config=config)
    return model


def _bare(config: ModelConfig) -> Model:
    name = name_of(config)
    config = replace(config, model=str(name))
    if name.provider == 'scripted':
        from habilis.models.scripted import ScriptedModel

        return ScriptedModel.from_file(name.model, functions=bool(config.functions), small=bool(config.small))
    if name.provider == 'local':
        from habilis.models.local import LocalModel

        return LocalModel(config)
    if name.provider == 'hf':
        from habilis.models.hf import HuggingFaceModel

        return HuggingFaceModel(config)
    from habilis.models.engine import EngineModel

    return EngineModel(config)
