"""The client that the official conformance suite starts: uses all tools of the server at the address it is given.

`conformance client --command 'python -m tests.tools.mcp.conformance_client' --scenario NAME`
"""

import asyncio
import json
import os
import sys
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from habilis.core.errors import HabilisError
from habilis.tools import McpServer, Toolbox

VALUES: dict[str, object] = {'string': 'x', 'number': 2, 'integer': 2, 'boolean': True, 'array': [], 'object': {}}


CALLBACK = AnyUrl('http://localhost:3000/callback')


class Tokens:
    """Keeps tokens as long as the process runs."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Browser:
    """Opens the page where the user would agree. That of the suite redirects at once."""

    answer: AuthorizationCodeResult

    async def open(self, url: str) -> None:
        async with httpx2.AsyncClient() as client:
            target = (await client.get(url)).headers['location']
        found = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
        self.answer = AuthorizationCodeResult(code=found['code'], state=found.get('state'), iss=found.get('iss'))

    async def answered(self) -> AuthorizationCodeResult:
        return self.answer


def auth_for(url: str) -> OAuthClientProvider:
    """OAuth of the SDK; the suite may name a client that the server knows."""
    browser, tokens = Browser(), Tokens()
    given = json.loads(os.environ.get('MCP_CONFORMANCE_CONTEXT') or '{}')
    if 'client_id' in given:
        known = {name: given.get(name) for name in ('client_id', 'client_secret')}
        tokens.client = OAuthClientInformationFull(
            **known, redirect_uris=[CALLBACK], token_endpoint_auth_method='client_secret_basic'
        )
    return OAuthClientProvider(
        url,
        OAuthClientMetadata(client_name='habilis', redirect_uris=[CALLBACK]),
        tokens,
        browser.open,
        browser.answered,
        client_metadata_url='https://conformance-test.local/client-metadata.json',
    )


async def main(url: str) -> None:
    server = McpServer(url=url, auth=auth_for(url), ask=lambda question: '', timeout=20)
    try:
        tools = await server.opened()
        box = Toolbox([tools], approve=lambda request: True)
        for tool in tools.tools:
            schema = tool.parameters
            properties, required = schema['properties'], schema['required']
            assert isinstance(properties, dict)
            assert isinstance(required, list)
            arguments: dict[str, object] = {}
            for name in required:
                wanted = properties[str(name)]
                arguments[str(name)] = VALUES.get(str(wanted.get('type')) if isinstance(wanted, dict) else '', 2)
            try:
                print(tool.name, await box.call(tool.name, **arguments))
            except HabilisError as error:
                print(tool.name, 'failed:', error)
    finally:
        await server.close()


if __name__ == '__main__':
    asyncio.run(main(sys.argv[-1]))
