"""Which model does the work, and getting the embedded one if it is the only one there could be."""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec

import typer

from habilis.cli.task.downloading import download_line
from habilis.cli.task.person import Person
from habilis.core.errors import ModelNotFound, NoModel
from habilis.core.settings import Settings
from habilis.models.config import ModelConfig
from habilis.models.contract import Model
from habilis.models.discovery import Choice, discover
from habilis.models.loader import load_model
from habilis.models.registry import Overrides, Registry, resolve_name

Say = Callable[[str], None]
"""Tells the user something, on stderr."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What the user has said about the model."""

    name: str | None = None
    option: str | None = None
    """That has named it: then a name that nobody knows is wrong usage."""

    overrides: Overrides = field(default_factory=Overrides)
    download: bool = False
    """Download the embedded model without asking."""


async def choose_model(wish: Wish, settings: Settings, person: Person, say: Say) -> Model:
    """A model to ask: the one that was named, or the first that is found. Raises `ModelError`."""
    try:
        choice = await find_choice(wish, settings)
        downloaded = await get_ready(choice, wish, person, say)
    except ModelNotFound as error:
        if wish.option is None or wish.name is None:
            raise
        raise typer.BadParameter(str(error), param_hint=wish.option) from None
    model = load_model(choice.config, settings=settings)
    if model.traits.scripted:
        say(f'SCRIPTED: {model.name} answers from a file; no model is asked')
    else:
        say(f'{model.name} ({"downloaded just now" if downloaded else choice.reason})')
    return model


async def find_choice(wish: Wish, settings: Settings) -> Choice:
    """The model that was named, or the first that is found; perhaps not installed yet."""
    registry = Registry(settings)
    if wish.name is not None:
        return Choice(config=registry.get(wish.name, wish.overrides), reason='--model', named=True)
    found = await discover(settings)
    return replace(found, config=registry.get(found.config, wish.overrides))


async def get_ready(choice: Choice, wish: Wish, person: Person, say: Say) -> bool:
    """Get what the model needs, if the user wants it; whether something was downloaded.

    Raises `NoModel`, saying what to do instead. What else a model that was named needs, it says itself.
    """
    if not is_embedded(choice.config):
        if not (choice.ready or choice.named):
            raise NoModel(_no_model(choice))
        return False
    from habilis.models.local import catalogue, ensure_installed, store

    name = resolve_name(choice.config).model
    if store.looks_like_path(name) or store.installed(name):
        return False
    if find_spec('xllamacpp') is None and find_spec('llama_cpp') is None:  # the weights alone would be of no use
        raise NoModel(_no_model(choice))
    if not (wish.download or person.there):
        msg = f'{_no_model(choice)}. --yes downloads it now'
        raise NoModel(msg)
    ask = None if wish.download else person.confirm
    try:
        with download_line(sys.stderr) as on_progress:
            await ensure_installed(name, ask=ask, on_progress=on_progress, on_message=say)
    except asyncio.CancelledError:
        if store.partial_path(catalogue.entry(name)).exists():
            say('what is downloaded so far is kept: the same command goes on with it')
        raise
    return True


def is_embedded(config: ModelConfig) -> bool:
    """Whether it runs inside this process, from weights of the catalogue."""
    return resolve_name(config).provider == 'local'


def _no_model(choice: Choice) -> str:
    if choice.named:
        from habilis.models.local import catalogue

        entry = catalogue.entry(resolve_name(choice.config).model)
        return f'{entry.name} is not downloaded yet ({entry.size}): habilis models install {entry.name}'
    return f'no model is there to use: {choice.reason}'
