"""Create a model from its name. Each kind of model is imported only when it is used."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Unpack

from habilis.core.errors import NoModel
from habilis.core.folders import responses_folder
from habilis.core.settings import Settings, load_settings
from habilis.models.config import ModelConfig
from habilis.models.contract import Model
from habilis.models.discovery import Choice, discover
from habilis.models.registry import Overrides, Registry, resolve_name

_SHARED_WITH_FALLBACKS = ('temperature', 'max_tokens', 'timeout', 'retries')


def load_model(
    which: str | ModelConfig | Model | None = None,
    *,
    settings: Settings | None = None,
    registry: Registry | None = None,
    **overrides: Unpack[Overrides],
) -> Model:
    """Create the model of that name or alias, with retries, and with cache and fallbacks as configured.

    Without a name: the default model of the settings, or else the first one that `discover` finds. That blocks while it
    probes for servers; async code may await `discover` and load the `config` of its choice instead.
    Raises `ModelNotFound`, `NoModel`, `SettingsError`, and `ImportError` if the SDK is missing.
    """
    if isinstance(which, Model):
        return which
    registry = registry or Registry(settings or load_settings())
    config = registry.get(which or registry.default or _discovered(registry.settings), overrides)
    models = [_create(config, registry.settings)]
    shared = Overrides(**{name: value for name, value in overrides.items() if name in _SHARED_WITH_FALLBACKS})  # pyright: ignore[reportArgumentType]
    for name in registry.settings.fallback:
        other = registry.get(name, shared)
        if other != config:
            models.append(_create(other, registry.settings))
    if len(models) == 1:
        return models[0]
    from habilis.models.fallback import FallbackModel

    return FallbackModel(models)


def _discovered(settings: Settings) -> ModelConfig:
    """The model that `discover` finds. Runs on a thread, because an event loop may be running here."""
    with ThreadPoolExecutor(1) as thread:
        choice: Choice = thread.submit(lambda: asyncio.run(discover(settings))).result()
    if not choice.ready:
        msg = f'no model is available: {choice.reason}'
        raise NoModel(msg)
    return choice.config


def _create(config: ModelConfig, settings: Settings) -> Model:
    model = _unwrapped(config)
    if config.retries:
        from habilis.models.retry import RetryModel

        model = RetryModel(model, retries=config.retries)
    if settings.response_cache:
        from habilis.models.cache import CachedModel

        model = CachedModel(model, responses_folder(), config=config)
    return model


def _unwrapped(config: ModelConfig) -> Model:
    name = resolve_name(config)
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
