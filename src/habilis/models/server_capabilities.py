"""What a model server says about its model: whether it calls functions, its context, and whether it sees images."""

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from urllib.request import BaseHandler, HTTPRedirectHandler, ProxyHandler, Request, build_opener

from habilis.core.narrowing import fields_in, items_in
from habilis.models.providers import NO_KEY, is_local

ASK_SECONDS = 2.0
_MAX_ANSWER = 4_000_000
_CONTEXT = re.compile(r'^num_ctx\s+(\d+)', re.MULTILINE)
_KINDS = {'ollama': 'ollama', 'library': 'ollama', 'llamacpp': 'llamacpp'}
"""Servers with more to say than the list of their models, by provider or by `owned_by` of that list."""


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a server says. None: it does not say."""

    functions: bool | None = None
    context_tokens: int | None = None
    images: bool | None = None


def ask_capabilities(provider: str, url: str, model: str, key: str | None) -> Capabilities:
    """Ask the server. Blocks for a few seconds at most; a server that does not answer says nothing."""
    server = _CapabilityClient(url, key)
    kind = _KINDS.get(provider)
    listed: Mapping[str, object] = {}
    if kind is None:
        models = [fields_in(item) for item in items_in(server.ask('/models').get('data'))]
        listed = next((item for item in models if item.get('id') == model), listed)
        kind = _KINDS.get(str(listed.get('owned_by')))
    if kind == 'ollama':
        return _from_ollama(server.ask('/api/show', {'model': model}))
    if kind == 'llamacpp':
        return _from_llamacpp(server.ask('/props'))
    parameters = items_in(listed.get('supported_parameters'))
    return Capabilities(
        functions='tools' in parameters if parameters else None,
        context_tokens=_number(listed.get('max_model_len')) or _number(listed.get('context_length')),
    )


def _from_ollama(shown: Mapping[str, object]) -> Capabilities:
    named = items_in(shown.get('capabilities'))
    size = _CONTEXT.search(str(shown.get('parameters', '')))  # that of the model itself is not what Ollama gives it
    return Capabilities(
        functions='tools' in named if named else None,
        context_tokens=int(size[1]) if size else None,
        images='vision' in named if named else None,
    )


def _from_llamacpp(props: Mapping[str, object]) -> Capabilities:
    calls = fields_in(props.get('chat_template_caps')).get('supports_tool_calls')
    vision = fields_in(props.get('modalities')).get('vision')
    return Capabilities(
        functions=calls if isinstance(calls, bool) else None,
        context_tokens=_number(fields_in(props.get('default_generation_settings')).get('n_ctx')),
        images=vision if isinstance(vision, bool) else None,
    )


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


class _CapabilityClient:
    def __init__(self, url: str, key: str | None) -> None:
        self._url = url
        self._headers = {'Accept': 'application/json', 'Content-Type': 'application/json'}
        if key and key != NO_KEY:
            self._headers['Authorization'] = f'Bearer {key}'
        handlers: list[BaseHandler] = [_NoRedirect(), *([ProxyHandler({})] if is_local(url) else [])]
        self._opener = build_opener(*handlers)

    def ask(self, path: str, body: Mapping[str, object] | None = None) -> Mapping[str, object]:
        """The fields of its answer, which is untrusted; none if there is no answer."""
        root = self._url if path == '/models' else self._url.removesuffix('/v1')
        data = None if body is None else json.dumps(body).encode()
        with contextlib.suppress(OSError, HTTPException, ValueError, RecursionError):
            request = Request(root + path, data=data, headers=self._headers)
            with self._opener.open(request, timeout=ASK_SECONDS) as answer:
                return fields_in(json.loads(answer.read(_MAX_ANSWER)))
        return {}


class _NoRedirect(HTTPRedirectHandler):
    """The key goes only to the server that is configured."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Follow none."""
