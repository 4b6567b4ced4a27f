"""Choose the model of a run, and download the embedded model if it is the only choice."""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec

import typer

from habilis.cli.download_progress import download_progress
from habilis.cli.terminal_user import TerminalUser
from habilis.core.errors import ModelNotFound, NoModel
from habilis.core.settings import Settings
from habilis.models.config import ModelConfig
from habilis.models.contract import Model
from habilis.models.discovery import Choice, check_server, discover, list_models, missing_requirement
from habilis.models.loader import load_model
from habilis.models.registry import Overrides, Registry, resolve_name

Say = Callable[[str], None]
"""Prints a message to the user."""


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """The user's request for a model."""

    name: str | None = None
    option: str | None = None
    """Option that gave the name; an unknown name is then a usage error."""

    overrides: Overrides = field(default_factory=Overrides)
    download: bool = False
    """Download the embedded model without asking."""


async def choose_model(request: ModelRequest, settings: Settings, user: TerminalUser, say: Say) -> Model:
    """Load the requested model, or the first one found. Raises `ModelError`."""
    try:
        choice = await find_choice(request, settings)
        downloaded = await ensure_ready(choice, request, user, say)
    except ModelNotFound as error:
        if request.option is None or request.name is None:
            raise
        raise typer.BadParameter(str(error), param_hint=request.option) from None
    model = load_model(choice.config, settings=settings)
    if model.traits.scripted:
        say(f'SCRIPTED: {model.name} replies from a file; no model is used')
    else:
        say(f'{model.name} ({"just downloaded" if downloaded else choice.reason})')
    return model


async def find_choice(request: ModelRequest, settings: Settings) -> Choice:
    """The requested model, or the first one found. It may not be installed yet."""
    registry = Registry(settings)
    if request.name is not None:
        reason = request.option or 'as before'
        return Choice(config=registry.get(request.name, request.overrides), reason=reason, named=True)
    found = await discover(settings)
    return replace(found, config=registry.get(found.config, request.overrides))


async def usable_models(settings: Settings) -> list[tuple[str, str]]:
    """Names of the models that can answer now, each with where it comes from: aliases, then what a search finds."""
    found = await list_models(settings)
    return [(name, choice.reason) for name, choice in found.items() if choice.ready]


async def why_unusable(config: ModelConfig) -> str | None:
    """Why a model cannot answer now; None if it can, as far as known. A download is offered when it is loaded."""
    if is_embedded(config):
        return None
    if missing := missing_requirement(config):
        return f'{config.model}: {missing}'
    checked = await check_server(Choice(config=config, reason=config.model))
    return None if checked.ready else checked.reason


async def ensure_ready(choice: Choice, request: ModelRequest, user: TerminalUser, say: Say) -> bool:
    """Download an embedded model that is not installed, if the user agrees. True if it was downloaded.

    Raises `NoModel` with advice. Other missing parts of a requested model are reported when it is loaded.
    """
    if not is_embedded(choice.config):
        if not (choice.ready or choice.named):
            raise NoModel(_no_model(choice))
        return False
    from habilis.models.local import catalogue, ensure_engine, ensure_installed, store

    name = resolve_name(choice.config).model
    if store.looks_like_path(name) or store.installed(name):
        with download_progress(sys.stderr) as on_progress:
            await ensure_engine(on_progress=on_progress, on_message=say)
        return False
    if find_spec('xllamacpp') is None:  # weights are useless without an engine
        raise NoModel(_no_model(choice))
    if not (request.download or user.is_present):
        msg = f'{_no_model(choice)}. Use --yes to download it now'
        raise NoModel(msg)
    ask = None if request.download else user.confirm
    try:
        with download_progress(sys.stderr) as on_progress:
            await ensure_installed(name, ask=ask, on_progress=on_progress, on_message=say)
    except asyncio.CancelledError:
        if store.partial_path(catalogue.entry(name)).exists():
            say('the partial download is kept; run the same command to resume it')
        raise
    return True


def is_embedded(config: ModelConfig) -> bool:
    """Whether the model runs in this process, from weights of the catalogue."""
    return resolve_name(config).provider == 'local'


def _no_model(choice: Choice) -> str:
    if choice.named:
        from habilis.models.local import catalogue

        entry = catalogue.entry(resolve_name(choice.config).model)
        return f'{entry.name} is not downloaded yet ({entry.size}): habilis models install {entry.name}'
    return f'no model available: {choice.reason}'
