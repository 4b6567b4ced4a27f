"""What a message may choose for its turn: the model and the permission mode."""

import asyncio
from dataclasses import dataclass

from habilis.core.settings import Settings
from habilis.models.contract import Model
from habilis.models.discovery import list_models
from habilis.models.loader import load_model
from habilis.server.operations import BadRequest

SERVED = 'habilis serve'
"""Key in the metadata of a run: this server may resume it when it starts. The name of its model, if one was chosen."""


@dataclass(frozen=True, kw_only=True)
class TurnChoice:
    """What a message chooses for its turn and those after it; empty: as before."""

    model: str = ''
    mode: str = ''


AS_BEFORE = TurnChoice()


class OfferedModels:
    """The models that may be chosen, each loaded once, for all who choose it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._models: dict[str, Model] = {}

    async def load(self, name: str) -> Model:
        """The model of a listed name: others could read files, or cost more than expected. Raises `BadRequest`."""
        if name not in self._models:
            choice = (await list_models(self._settings)).get(name)
            if choice is None or not choice.ready:
                msg = f'{name!r} cannot be chosen: {choice.reason if choice else "GET /api/settings lists the models"}'
                raise BadRequest(msg)
            self._models[name] = await asyncio.to_thread(load_model, choice.config, settings=self._settings)
        return self._models[name]

    async def close(self) -> None:
        """Free the models."""
        await asyncio.gather(*(model.close() for model in self._models.values()))
