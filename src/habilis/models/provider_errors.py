"""Translation of provider, SDK and network errors to `ModelError`, each with a one-line message."""

import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

from habilis.core.errors import (
    ContextOverflow,
    FunctionsRefused,
    ModelAccessDenied,
    ModelError,
    ModelNotFound,
    ModelRefused,
    ModelUnavailable,
    RateLimited,
)
from habilis.core.narrowing import is_dict, items_in
from habilis.core.secrets import redact
from habilis.models.http_response import ObservedResponse
from habilis.models.model_names import ModelName
from habilis.models.providers import Provider, proxy_of, shown_url

_log = logging.getLogger(__name__)

_MAX_LENGTH = 300
_SOCKS = "pip install 'httpx[socks]'"
_WEB_PAGE = 'a web page'
_MIN_KEY_LENGTH = 6  # shorter ones are placeholders such as `none`, and may occur in the message
_TOKENS = re.compile(r'\b(?:sk|pk|gsk|key|xai)[-_][\w*-]{8,}|\bAIza[\w-]{10,}|\bAKIA\w{10,}|(?<=Bearer )\S+')
"""More than `redact` takes for a key: a message about a key often has a part of it."""

"""Partial and masked keys, which servers quote in error messages."""

_TOO_LONG = re.compile(
    r'context[ _-]?(?:length|window|size)|maximum context|prompt is too long|input is too long'
    r'|too many (?:input |prompt )?tokens|(?:input|prompt)[ \w]{0,20}tokens?[ \w()]{0,30}exceed'
    r'|exceeds? the (?:available )?context|reduce the length of the (?:messages|prompt)|exceed_context_size',
    re.IGNORECASE,
)
_NO_FUNCTIONS = re.compile(
    r"(?:not|n't|un)[ -]?support\w*[^.]{0,40}\b(?:tool|function)s?\b"
    r'|\b(?:tool|function)s?\b[^.]{0,60}(?:not (?:fully )?supported|not enabled|requires? --)'
    r'|no endpoints found that support tool',
    re.IGNORECASE,
)
"""How servers say that they, or this model, take no functions."""

_REFUSED = re.compile(r'connection refused|all connection attempts failed|could not connect|errno 111', re.IGNORECASE)
_UNKNOWN_HOST = re.compile(
    r'name or service not known|nodename nor servname|temporary failure in name resolution|getaddrinfo'
    r'|name resolution|no address associated',
    re.IGNORECASE,
)
_ACCESS = re.compile(r'NoCredentialsError|PartialCredentialsError|CredentialRetrievalError|TokenRetrievalError')


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """The model, server and key of a request, for error messages."""

    name: ModelName
    provider: Provider
    url: str | None
    key: str | None
    seconds: float

    @property
    def shown(self) -> str:
        """Name of the model, printable."""
        return printable(str(self.name))

    @property
    def server(self) -> str:
        """The provider's name, or the URL of a server that users run themselves."""
        if (self.url and self.url != self.provider.url) or self.provider.own_server:
            return f'the server at {shown_url(self.url)}'
        return self.name.provider


def missing_key(endpoint: Endpoint) -> ModelAccessDenied:
    """No API key is configured."""
    variables = ' or '.join(endpoint.provider.keys)
    msg = f'{endpoint.shown} needs a key: set {variables}, or api_key in the settings of the model'
    return ModelAccessDenied(msg)


def invalid_key(endpoint: Endpoint) -> ModelAccessDenied:
    """The key contains characters that a header cannot carry, such as a curly quote or a line break."""
    advice = _key_advice(endpoint)
    return ModelAccessDenied(f'the key for {endpoint.shown} contains characters that cannot be sent. {advice}')


class PackageMissing(ModelError, ImportError):
    """The SDK of the provider is not installed; the message says how to install it."""

    @classmethod
    def of(cls, endpoint: Endpoint, error: ImportError) -> 'PackageMissing':
        """Create the error for a provider from the `ImportError`."""
        if 'socksio' in str(error):  # needed by the proxy, not by the provider
            return cls(f'the proxy {shown_url(proxy_of(endpoint.url))} needs a package that is not installed: {_SOCKS}')
        extra = endpoint.provider.install
        wanted = f"pip install 'habilis[{extra}]'" if extra else 'pip install --force-reinstall habilis'
        missing = cls(f'{endpoint.name.provider} needs a package that is not installed: {wanted}')
        missing.name = error.name
        return missing


def timed_out(endpoint: Endpoint, *, reply_started: bool) -> ModelUnavailable:
    """The request timed out."""
    what = 'stopped in the middle of its reply and sent nothing for' if reply_started else 'did not answer within'
    msg = f'{endpoint.server} {what} {endpoint.seconds:g} s; try again, or raise the timeout of {endpoint.shown}'
    return ModelUnavailable(msg)


def interrupted(endpoint: Endpoint, response: ObservedResponse | None) -> ModelError:
    """The stream ended before the reply was complete."""
    if response and (detail := _text_in(response.error)):
        return _reported(endpoint, _cleaned(detail, endpoint))
    msg = f'{endpoint.server} ended its reply in the middle; try again'
    return ModelUnavailable(msg)


def invalid_response(endpoint: Endpoint, response: ObservedResponse | None = None, detail: str = '') -> ModelError:
    """The response is empty or not of this protocol."""
    if response and (message := _text_in(response.error)):
        return _reported(endpoint, _cleaned(message, endpoint))
    advice = 'Try again; if it persists, check the URL'
    return ModelUnavailable(_line(endpoint, 'sent an invalid response', detail, advice))


def _reported(endpoint: Endpoint, detail: str) -> ModelError:
    """The server reports an error in the body of a response or inside a stream."""
    if _TOO_LONG.search(detail):
        return _overflow(endpoint, detail)
    return ModelUnavailable(_line(endpoint, 'cannot answer', detail, 'Try again later'))


def _overflow(endpoint: Endpoint, detail: str, status: int | None = None) -> ContextOverflow:
    what = f'refused the messages as too long ({status})' if status else 'refused the messages as too long'
    return ContextOverflow(_line(endpoint, what, detail, 'Send less, or use a larger model'), status=status)


def _redirected(endpoint: Endpoint, response: ObservedResponse, location: str) -> ModelRefused:
    """Redirects are not followed, so that the key goes only to the configured server."""
    base = (urlsplit(endpoint.url).path if endpoint.url else '').rstrip('/')
    location = shown_url(location).removesuffix(response.path.removeprefix(base))
    msg = f'{endpoint.server} redirects to {_cleaned(location, endpoint)}; use that URL as base_url'
    return ModelRefused(msg, status=response.status)


def translate(error: Exception, endpoint: Endpoint, response: ObservedResponse | None = None) -> ModelError:
    """Translate an error of pydantic-ai, an SDK or the network."""
    from pydantic_ai import exceptions as vendor

    if response and (location := response.redirect):
        return _redirected(endpoint, response, location)
    detail = _provider_message(error, endpoint)
    if isinstance(error, vendor.ModelHTTPError):
        return _from_status(error, detail, endpoint)
    if isinstance(error, vendor.ModelContextWindowExceededError):
        return _overflow(endpoint, detail)
    if isinstance(error, vendor.ModelConnectionError) or _is_network(error):
        return _unreachable(error, detail, endpoint)
    if isinstance(error, vendor.ContentFilterError):
        return ModelRefused(_line(endpoint, 'blocked the reply by its content filter', detail))
    if isinstance(error, vendor.UserError | vendor.ModelRequestRejectedError):
        return ModelRefused(_line(endpoint, 'cannot accept the request', detail))
    if any(_ACCESS.search(type(cause).__name__) for cause in _causes(error)):
        return ModelAccessDenied(_line(endpoint, 'found no credentials', detail, _key_advice(endpoint)))
    if type(error).__name__ == 'NoRegionError':
        return ModelRefused(f'{endpoint.shown} needs a region: set AWS_REGION, for instance to us-east-1')
    if type(error).__module__.startswith('botocore'):
        return ModelRefused(_line(endpoint, 'cannot accept the request', detail))
    _log.debug('%s: %s: %s', endpoint.name, type(error).__name__, detail)
    bodies = (_text_in(getattr(cause, 'body', None)) for cause in _causes(error))
    if message := next(filter(None, bodies), ''):
        return _reported(endpoint, _cleaned(message, endpoint))
    if response is None and endpoint.provider.name != 'bedrock':  # nothing was sent, so the request itself is invalid
        return ModelRefused(_line(endpoint, 'cannot accept the request', detail))
    return invalid_response(endpoint, response, detail if detail.startswith(_WEB_PAGE) else '')


def _from_status(error: object, detail: str, endpoint: Endpoint) -> ModelError:
    from pydantic_ai import exceptions as vendor

    failure = cast('vendor.ModelHTTPError', error)
    status, wait = failure.status_code, failure.retry_after
    if isinstance(failure, vendor.ModelContextWindowExceededError) or (
        status in {400, 413, 422} and _TOO_LONG.search(f'{failure.provider_error_code} {detail}')
    ):
        return _overflow(endpoint, detail, status)
    if status in {400, 404, 422, 500, 501} and _NO_FUNCTIONS.search(detail):
        msg = _line(endpoint, f'refuses function calls ({status})', detail)
        return FunctionsRefused(msg, status=status)
    if isinstance(failure, vendor.ModelQuotaExceededError):
        msg = _line(endpoint, f'reports no credit left for this key ({status})', detail)
        return ModelAccessDenied(msg, status=status, retry_after=wait)
    if status in {401, 403}:
        msg = _line(endpoint, f'refused the key ({status})', detail, _key_advice(endpoint))
        return ModelAccessDenied(msg, status=status)
    if status == 404:
        msg = _line(endpoint, f'has no model {endpoint.name.model!r} ({status})', detail, _name_advice(endpoint))
        return ModelNotFound(msg, status=status)
    if status == 429:
        advice = f'Retry after {wait:g} s' if wait else 'Try again later'
        return RateLimited(
            _line(endpoint, f'reports too many requests ({status})', detail, advice), status=status, retry_after=wait
        )
    if status == 408 or status >= 500:
        msg = _line(endpoint, f'is unavailable ({status})', detail, 'Try again later')
        return ModelUnavailable(msg, status=status, retry_after=wait)
    return ModelRefused(_line(endpoint, f'refused the request ({status})', detail), status=status)


def _unreachable(error: Exception, detail: str, endpoint: Endpoint) -> ModelUnavailable:
    server = f'the server at {shown_url(endpoint.url)}' if endpoint.url else endpoint.server
    if proxy := proxy_of(endpoint.url):  # the connection goes to the proxy
        server = f'the proxy at {shown_url(proxy)}, which is used for {endpoint.server},'
    chain = ' '.join(f'{type(cause).__name__} {cause}' for cause in _causes(error))
    if _UNKNOWN_HOST.search(chain):
        return ModelUnavailable(f'cannot resolve the host of {server.rstrip(",")}: check the URL and the network')
    if _REFUSED.search(chain):
        return ModelUnavailable(f'{server} refused the connection: is it running?')
    if re.search(r'connect ?timeout', chain, re.IGNORECASE):
        return ModelUnavailable(f'cannot reach {server.rstrip(",")}: check the URL and the network')
    if re.search(r'timeout|timed out', chain, re.IGNORECASE):
        return timed_out(endpoint, reply_started=False)
    why = '' if detail in {'', 'Connection error.'} else f': {detail.rstrip(".")}'
    return ModelUnavailable(
        f'the connection to {server.removeprefix("the server at ").rstrip(",")} was lost{why}; try again'
    )


def _is_network(error: Exception) -> bool:
    """Whether it is an error of an HTTP library or of botocore that pydantic-ai did not translate."""
    modules = {type(cause).__module__.partition('.')[0] for cause in _causes(error)}
    names = ' '.join(type(cause).__name__ for cause in _causes(error))
    vendors = modules & {'httpx', 'httpx2', 'httpcore', 'httpcore2', 'botocore', 'urllib3', 'ssl'}
    return isinstance(error, OSError) or bool(
        vendors and re.search(r'Connect|Network|Protocol|Read|Write|Pool|Timeout|Closed|SSL|Incomplete', names)
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _line(endpoint: Endpoint, what: str, detail: str, advice: str = '') -> str:
    detail = f': {detail.rstrip(".")}' if detail else ''
    return f'{endpoint.server} {what}{detail}' + (f'. {advice}' if advice else '')


def _key_advice(endpoint: Endpoint) -> str:
    variables = ' or '.join(endpoint.provider.keys)
    if endpoint.provider.name == 'bedrock':
        return f'Set {variables}, or the AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of your account'
    return f'The key is read from {variables}, or from api_key in the settings of the model'


def _name_advice(endpoint: Endpoint) -> str:
    if endpoint.provider.name == 'ollama':
        return f'Download it with: ollama pull {printable(endpoint.name.model)}'
    if endpoint.provider.own_server:
        return 'Check the name, and the URL, which usually ends in /v1'
    return 'Check the name' if endpoint.url == endpoint.provider.url else 'Check the name and the URL'


def _provider_message(error: Exception, endpoint: Endpoint) -> str:
    """The provider's own error message: one short line without the key."""
    body = getattr(error, 'body', None)
    return _cleaned((_text_in(body) if body else '') or ('' if _is_status(error) else str(error)), endpoint)


def _cleaned(text: str, endpoint: Endpoint) -> str:
    """Make untrusted text one short printable line without the key."""
    if re.search(r'<!doctype|<html|<body', text, re.IGNORECASE):
        title = re.search(r'<title[^>]*>(.*?)</title>', text, re.IGNORECASE | re.DOTALL)
        text = f'{_WEB_PAGE}{f" named {title[1].strip()!r}" if title else ""}'
    text = printable(redacted(' '.join(text.split()), endpoint.key))
    return text if len(text) <= _MAX_LENGTH else f'{text[:_MAX_LENGTH]}…'


def printable(text: str) -> str:
    """The text with unprintable characters escaped, such as `\\x1b`."""
    return text if text.isprintable() else ''.join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _is_status(error: Exception) -> bool:
    return hasattr(error, 'status_code')


def redacted(text: str, key: str | None) -> str:
    """The text without the key, and without anything that looks like a key."""
    if key and len(key) >= _MIN_KEY_LENGTH:
        text = text.replace(key, '[key]')
    return redact(_TOKENS.sub('[key]', text))


def _text_in(body: object) -> str:
    """The message in the body of an error, whichever field the provider uses."""
    if isinstance(body, bytes):
        body = body.decode(errors='replace')
    if isinstance(body, str):
        try:
            inner: object = json.loads(body)
        except ValueError:
            return body
        return body if isinstance(inner, str | int | float | None) else _text_in(inner)
    if is_dict(body):
        for name in ('error', 'message', 'Message', 'detail', 'msg', 'Error', 'errors', 'title'):
            if text := _text_in(body.get(name)):
                return text
    return '; '.join(filter(None, (_text_in(item) for item in items_in(body)[:3])))
