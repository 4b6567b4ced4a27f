"""The settings that a person sees and chooses from: models, permission modes, examples, what is missing. No keys."""

import importlib.util

from starlette.requests import Request
from starlette.responses import Response

from habilis.assistant.modes import MODES
from habilis.models.discovery import list_models
from habilis.server.assistant.conversations import API_SESSION, Conversations, OpenConversation
from habilis.server.assistant.examples import EXAMPLES
from habilis.server.assistant.models import MissingModel, OfferedModel, SettingsModel, json_response

NO_MODEL = 'A language model, as replies come from a script: the embedded one, or set the key of a provider.'


async def get_settings(conversations: Conversations, request: Request) -> Response:
    """The models and modes to choose from, and those of a `session`; what is missing, and how to get it."""
    session = request.query_params.get('session') or API_SESSION
    one = await conversations.get(request.scope['owner'], session)
    known = await list_models(conversations.settings)
    first = one.first_model
    models = [OfferedModel(name=first.name, model=first.name, ready=True, why='of this server')]
    models += [
        OfferedModel(name=name, model=choice.config.model, ready=choice.ready, why=choice.reason)
        for name, choice in known.items()
        if name != first.name
    ]
    settings = SettingsModel(
        model=one.chosen_model,
        is_scripted=one.session.model.traits.scripted,
        models=models,
        mode=one.session.mode,
        modes=list(MODES),
        examples=[example.message for example in EXAMPLES],
        missing=_missing(conversations, one),
    )
    return json_response(settings)


OPERATIONS = (('GET', '/api/settings', get_settings, None, SettingsModel),)


def _missing(conversations: Conversations, one: OpenConversation) -> list[MissingModel]:
    found: list[MissingModel] = []
    if one.first_model.traits.scripted:
        found.append(MissingModel(what=NO_MODEL, how='habilis models install'))
    if importlib.util.find_spec('trafilatura') is None:
        found.append(MissingModel(what='Pages of the web, and research.', how="pip install 'habilis[web]'"))
    if one.session.opened.folder is None:
        found.append(MissingModel(what='A folder to work in.', how='habilis serve --workspace FOLDER'))
    if conversations.library is None:
        found.append(MissingModel(what='A library, where built tools are kept.', how='habilis serve --library'))
    return found
