"""Where requests and keys go, with real servers: a key reaches its own provider alone, whatever URL is set."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from habilis.core.errors import HabilisError
from habilis.core.settings import Settings, load_settings
from habilis.models.contract import Message
from habilis.models.embeddings import ProviderEmbedder
from habilis.models.loader import load_model
from habilis.models.providers import PROVIDERS
from tests.models.protocol_server import ProtocolServer, answer_json
from tests.place import Place

HELLO = [Message(role='user', text='hello')]
HOSTED = {
    'openai': 'api.openai.com',
    'openai-responses': 'api.openai.com',
    'anthropic': 'api.anthropic.com',
    'google': 'generativelanguage.googleapis.com',
    'mistral': 'api.mistral.ai',
    'groq': 'api.groq.com',
    'openrouter': 'openrouter.ai',
    'bedrock': 'bedrock-runtime.eu-west-1.amazonaws.com',
}
"""The own server of each provider that has one."""

OWN_SERVERS = {'ollama': 'OLLAMA_BASE_URL', 'vllm': 'VLLM_BASE_URL', 'llamacpp': 'LLAMACPP_BASE_URL'}
SDK_VARIABLES = {
    'OPENAI_ORG_ID': 'private-organization',
    'OPENAI_PROJECT_ID': 'private-project',
    'OPENAI_ADMIN_KEY': 'private-admin',
    'OPENAI_CUSTOM_HEADERS': 'x-gateway: private-openai-header',
    'ANTHROPIC_AUTH_TOKEN': 'private-token',
    'ANTHROPIC_CUSTOM_HEADERS': 'x-gateway: private-anthropic-header',
    'GROQ_CUSTOM_HEADERS': 'x-gateway: private-groq-header',
    'AWS_ACCESS_KEY_ID': 'private-id',
    'AWS_SECRET_ACCESS_KEY': 'private-secret',
    'AWS_SESSION_TOKEN': 'private-session',
}
Way = Literal['environment', '.env', 'project', 'user', 'argument']
WAYS: tuple[Way, ...] = ('environment', '.env', 'project', 'user', 'argument')


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    """What the general `base_url` names."""
    with ProtocolServer() as running:
        yield running


@pytest.fixture
def home() -> Iterator[ProtocolServer]:
    """What the variable of one provider names."""
    with ProtocolServer() as running:
        yield running


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hosts that are looked for. None is found, apart from this machine: nothing leaves it."""
    hosts: list[str] = []
    real = socket.getaddrinfo

    def getaddrinfo(host: object, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else str(host)
        if name == '127.0.0.1':
            return real(name, *args, **kwargs)
        hosts.append(name)
        raise socket.gaierror(socket.EAI_NONAME, 'no such host')

    monkeypatch.setattr(socket, 'getaddrinfo', getaddrinfo)
    return hosts


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lookups: list[str]) -> Place:
    """Every provider has its key, each its own; nothing leaves this machine."""
    place = Place(tmp_path, monkeypatch)
    for name in ('http_proxy', 'https_proxy', 'all_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'AWS_PROFILE'):
        monkeypatch.delenv(name, raising=False)
    place.environment(AWS_REGION='eu-west-1', **SDK_VARIABLES)
    for provider in PROVIDERS.values():
        if provider.name != 'bedrock':  # signs with its pair of keys here: it sends a token over HTTPS only
            place.environment(**{provider.keys[0]: f'private-{provider.name}'})
    return place


def settings_with(place: Place, way: Way, url: str, key: str | None = None) -> Settings:
    """Set the general `base_url`, and `api_key`, in one of the ways."""
    values = {'base_url': url} | ({'api_key': key} if key else {})
    variables = {f'HABILIS_{name.upper()}': value for name, value in values.items()}
    if way == 'environment':
        place.environment(**variables)
    elif way == '.env':
        place.dotenv(''.join(f'{name}={value}\n' for name, value in variables.items()))
    elif way in {'project', 'user'}:
        write = place.project if way == 'project' else place.user
        write(''.join(f'{name} = "{value}"\n' for name, value in values.items()))
    return load_settings(base_url=url, api_key=key) if way == 'argument' else load_settings()


async def ask(name: str, settings: Settings, *, base_url: str | None = None) -> None:
    """One request, which may fail."""
    model = load_model(name, settings=settings, retries=0, timeout=30, base_url=base_url)
    try:
        await model.request(HELLO)
    except HabilisError:
        pass
    finally:
        await model.close()


def private(server: ProtocolServer) -> list[str]:
    """The secrets that arrived, in any header, path or body."""
    arrived = ' '.join(f'{asked.path} {dict(asked.headers)} {asked.body!r}' for asked in server.requests)
    return [word for word in arrived.replace("'", ' ').replace(',', ' ').split() if 'private-' in word]


def keys_in(server: ProtocolServer) -> set[str]:
    """The keys of providers that arrived."""
    return {word for word in private(server) if word.removeprefix('private-') in PROVIDERS}


class TestGeneralUrl:
    @pytest.mark.parametrize('way', WAYS)
    async def test_hosted_providers_are_asked_at_home(
        self, place: Place, server: ProtocolServer, lookups: list[str], way: Way
    ) -> None:
        settings = settings_with(place, way, server.base_url('openai'), key='private-general')
        for provider in HOSTED:
            await ask(f'{provider}:x/m', settings)
        assert server.requests == []
        assert lookups == list(HOSTED.values())

    @pytest.mark.parametrize('way', ['environment', 'project'])
    async def test_other_servers_of_the_user_are_asked_where_their_own_variable_says(
        self, place: Place, server: ProtocolServer, home: ProtocolServer, way: Way
    ) -> None:
        place.environment(**{variable: home.base_url(provider) for provider, variable in OWN_SERVERS.items()})
        settings = settings_with(place, way, server.base_url('openai'), key='private-general')
        for provider in OWN_SERVERS:
            await ask(f'{provider}:m', settings)
        assert server.requests == []
        assert private(home) == [f'private-{provider}' for provider in OWN_SERVERS]

    @pytest.mark.parametrize('way', ['environment', 'project'])
    async def test_the_server_gets_its_own_key_and_no_other(
        self, place: Place, server: ProtocolServer, way: Way
    ) -> None:
        place.environment(HABILIS_MODELS='{"alias": {"model": "m"}, "short": "openai-compatible:m"}')
        names = ('m', 'anthropic/m', 'openai-compatible:m', 'alias', 'short')
        for key in (None, 'private-general'):
            settings = settings_with(place, way, server.base_url('openai'), key=key)
            for name in names:
                await ask(name, settings)
            assert private(server) == [key or 'private-openai-compatible'] * len(names)
            server.requests.clear()

    async def test_its_key_goes_nowhere_else(self, place: Place, server: ProtocolServer, home: ProtocolServer) -> None:
        place.environment(
            HABILIS_MODELS=f'{{"other": {{"model": "m", "base_url": "{home.base_url("openai")}"}}}}',
            OPENAI_BASE_URL=home.base_url('openai'),
        )
        settings = settings_with(place, 'environment', server.base_url('openai'), key='private-general')
        await ask('other', settings)
        await ask('openai:m', settings)
        assert 'private-general' not in private(home)
        assert len(home.requests) == 2

    async def test_embeddings_follow_the_same_rule(
        self, place: Place, server: ProtocolServer, lookups: list[str]
    ) -> None:
        settings = settings_with(place, 'environment', server.base_url('openai'))
        with pytest.raises(HabilisError):
            await ProviderEmbedder('openai:m', settings=settings, retries=0).embed(['a'])
        assert lookups == ['api.openai.com']
        server.will_answer(answer_json({}, status=404, headers={'connection': 'close'}))
        with pytest.raises(HabilisError):
            await ProviderEmbedder('m', settings=settings, retries=0).embed(['a'])
        assert private(server) == ['private-openai-compatible']


class TestUrlOfOneProvider:
    @pytest.mark.parametrize('provider', ['openai', 'anthropic', 'google', 'groq', 'bedrock'])
    async def test_its_variable_moves_that_provider_alone(
        self, place: Place, home: ProtocolServer, lookups: list[str], provider: str
    ) -> None:
        place.environment(**{PROVIDERS[provider].urls[0]: home.base_url(provider)})
        for asked in HOSTED:
            await ask(f'{asked}:x/m', load_settings())
        moved = [other for other in HOSTED if PROVIDERS[other].urls == PROVIDERS[provider].urls]
        assert len(home.requests) == len(moved)
        assert keys_in(home) <= {f'private-{other}' for other in moved} | {'private-bedrock'}
        assert lookups == [host for other, host in HOSTED.items() if other not in moved]

    @pytest.mark.parametrize('provider', [*HOSTED, *OWN_SERVERS])
    async def test_the_url_of_a_model_gets_the_key_of_its_provider_only(
        self, place: Place, server: ProtocolServer, provider: str
    ) -> None:
        url = server.base_url(provider)
        place.environment(HABILIS_MODELS=f'{{"mine": {{"model": "{provider}:x/m", "base_url": "{url}"}}}}')
        await ask('mine', load_settings())
        await ask(f'{provider}:x/m', load_settings(), base_url=url)
        assert len(server.requests) == 2
        assert keys_in(server) <= {f'private-{other}' for other in (provider, f'{provider}-responses')}

    async def test_a_name_with_a_slash_stays_with_its_provider(self, place: Place, home: ProtocolServer) -> None:
        place.dotenv(f'ANTHROPIC_BASE_URL={home.base_url("anthropic")}\n')
        await ask('anthropic/m', load_settings())
        assert [asked.path for asked in home.requests] == ['/v1/messages']


async def test_nothing_private_goes_to_a_server_that_a_file_of_the_folder_names(
    place: Place, server: ProtocolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_never_local(_url: str) -> bool:
        return False

    monkeypatch.setattr('habilis.models.credentials.is_local', is_never_local)
    for provider in HOSTED:
        place.project(f'[models.mine]\nmodel = "{provider}:x/m"\nbase_url = "{server.base_url(provider)}"\n')
        await ask('mine', load_settings())
    assert len(server.requests) == len(HOSTED) - 1  # Bedrock's SDK sends no token without TLS
    assert private(server) == []
