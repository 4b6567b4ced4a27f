"""Whatever goes wrong with a provider, as one error of ours with one clear line."""

import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

from habilis.core.errors import (
    ContextOverflow,
    ModelAccessDenied,
    ModelError,
    ModelNotFound,
    ModelRefused,
    ModelUnavailable,
    RateLimited,
)
from habilis.core.logs import redact
from habilis.models.heard import Heard
from habilis.models.names import ModelName
from habilis.models.providers import Provider, proxy_of, shown_url

_log = logging.getLogger(__name__)

_LONGEST = 300
_SOCKS = "pip install 'httpx[socks]'"
_WEB_PAGE = 'a web page'
_SHORTEST_KEY = 6  # anything shorter is a stand-in such as `none`, and may be a word of the message
_TOKENS = re.compile(r'\b(?:sk|pk|gsk|key|xai)[-_][\w*-]{8,}|\bAIza[\w-]{10,}|\bAKIA\w{10,}|(?<=Bearer )\S+')
"""Beside what is never logged: a server likes to show a key with stars, or a part of it."""

_TOO_LONG = re.compile(
    r'context[ _-]?(?:length|window|size)|maximum context|prompt is too long|input is too long'
    r'|too many (?:input |prompt )?tokens|(?:input|prompt)[ \w]{0,20}tokens?[ \w()]{0,30}exceed'
    r'|exceeds? the (?:available )?context|reduce the length of the (?:messages|prompt)|exceed_context_size',
    re.IGNORECASE,
)
_REFUSED = re.compile(r'connection refused|all connection attempts failed|could not connect|errno 111', re.IGNORECASE)
_UNKNOWN_HOST = re.compile(
    r'name or service not known|nodename nor servname|temporary failure in name resolution|getaddrinfo'
    r'|name resolution|no address associated',
    re.IGNORECASE,
)
_ACCESS = re.compile(r'NoCredentialsError|PartialCredentialsError|CredentialRetrievalError|TokenRetrievalError')


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Who was asked: what every message needs to say."""

    name: ModelName
    provider: Provider
    url: str | None
    key: str | None
    seconds: float

    @property
    def shown(self) -> str:
        """The name of the model, for people."""
        return harmless(str(self.name))

    @property
    def place(self) -> str:
        """The server, for people: by name where there is only one, by address where they run it."""
        if (self.url and self.url != self.provider.url) or self.provider.own_server:
            return f'the server at {shown_url(self.url)}'
        return self.name.provider


def missing_key(asked: Asked) -> ModelAccessDenied:
    """No key was given, and the environment has none."""
    variables = ' or '.join(asked.provider.keys)
    msg = f'{asked.shown} needs a key: set {variables}, or api_key in the settings of the model'
    return ModelAccessDenied(msg)


def unsendable_key(asked: Asked) -> ModelAccessDenied:
    """The key was copied with something in it that no header takes: a curly quote, a line break."""
    advice = _key_advice(asked)
    return ModelAccessDenied(f'the key for {asked.shown} has characters that cannot be sent. {advice}')


class PackageMissing(ModelError, ImportError):
    """The SDK of the provider is not installed; the message says how to get it."""

    @classmethod
    def of(cls, asked: Asked, error: ImportError) -> 'PackageMissing':
        """For one provider, from what the import said."""
        if 'socksio' in str(error):  # what it takes has nothing to do with the provider
            return cls(f'the proxy {shown_url(proxy_of(asked.url))} needs a package that is not installed: {_SOCKS}')
        extra = asked.provider.install
        wanted = f"pip install 'habilis[{extra}]'" if extra else 'pip install --force-reinstall habilis'
        missing = cls(f'{asked.name.provider} needs a package that is not installed: {wanted}')
        missing.name = error.name
        return missing


def too_slow(asked: Asked, *, began: bool) -> ModelUnavailable:
    """Our own time limit passed."""
    what = 'stopped in the middle of its answer and sent nothing more for' if began else 'did not answer within'
    msg = f'{asked.place} {what} {asked.seconds:g} s; try again, or raise the timeout of {asked.shown}'
    return ModelUnavailable(msg)


def broken_off(asked: Asked, answer: Heard | None) -> ModelError:
    """The stream ended before the answer did."""
    if answer and (said := _text_in(answer.error)):
        return _complained(asked, _tidy(said, asked))
    msg = f'{asked.place} ended its answer in the middle; try again'
    return ModelUnavailable(msg)


def not_understood(asked: Asked, answer: Heard | None = None, said: str = '') -> ModelError:
    """What came is no answer in this protocol, or an empty one; perhaps it says itself what is wrong."""
    if answer and (complaint := _text_in(answer.error)):
        return _complained(asked, _tidy(complaint, asked))
    advice = 'Try again; if it stays so, check the address'
    return ModelUnavailable(_line(asked, 'sent an answer that cannot be understood', said, advice))


def _complained(asked: Asked, said: str) -> ModelError:
    """The server says in its answer, or in the middle of it, that it cannot answer."""
    if _TOO_LONG.search(said):
        return ContextOverflow(_line(asked, 'cannot read that much', said, 'Send less, or use a larger model'))
    return ModelUnavailable(_line(asked, 'cannot answer', said, 'Try again later'))


def _redirected(asked: Asked, answer: Heard, place: str) -> ModelRefused:
    """It is not followed: the key would go where nobody has sent it."""
    base = (urlsplit(asked.url).path if asked.url else '').rstrip('/')
    place = shown_url(place).removesuffix(answer.path.removeprefix(base))
    msg = f'{asked.place} redirects to {_tidy(place, asked)}; use that address as base_url'
    return ModelRefused(msg, status=answer.status)


def translated(error: Exception, asked: Asked, answer: Heard | None = None) -> ModelError:
    """The error of ours for one of the model layer, an SDK or the network."""
    from pydantic_ai import exceptions as vendor

    if answer and (place := answer.redirect):
        return _redirected(asked, answer, place)
    said = _said(error, asked)
    if isinstance(error, vendor.ModelHTTPError):
        return _from_status(error, said, asked)
    if isinstance(error, vendor.ModelContextWindowExceededError):
        return ContextOverflow(_line(asked, 'cannot read that much', said, 'Send less, or use a larger model'))
    if isinstance(error, vendor.ModelConnectionError) or _is_network(error):
        return _unreachable(error, said, asked)
    if isinstance(error, vendor.ContentFilterError):
        return ModelRefused(_line(asked, 'did not answer for reasons of content', said))
    if isinstance(error, vendor.UserError | vendor.ModelRequestRejectedError):
        return ModelRefused(_line(asked, 'cannot be asked that', said))
    if any(_ACCESS.search(type(cause).__name__) for cause in _causes(error)):
        return ModelAccessDenied(_line(asked, 'got no credentials', said, _key_advice(asked)))
    if type(error).__name__ == 'NoRegionError':
        return ModelRefused(f'{asked.shown} needs a region: set AWS_REGION, for instance to us-east-1')
    if type(error).__module__.startswith('botocore'):
        return ModelRefused(_line(asked, 'cannot be asked that', said))
    _log.debug('%s: %s: %s', asked.name, type(error).__name__, said)
    bodies = (_text_in(getattr(cause, 'body', None)) for cause in _causes(error))
    if complaint := next(filter(None, bodies), ''):
        return _complained(asked, _tidy(complaint, asked))
    if answer is None and asked.provider.name != 'bedrock':  # nothing was sent, so it is not the server's fault
        return ModelRefused(_line(asked, 'cannot be asked that', said))
    return not_understood(asked, answer, said if said.startswith(_WEB_PAGE) else '')


def _from_status(error: object, said: str, asked: Asked) -> ModelError:
    from pydantic_ai import exceptions as vendor

    fault = cast('vendor.ModelHTTPError', error)
    status, wait = fault.status_code, fault.retry_after
    if isinstance(fault, vendor.ModelContextWindowExceededError) or (
        status in {400, 413, 422} and _TOO_LONG.search(f'{fault.provider_error_code} {said}')
    ):
        msg = _line(asked, f'cannot read that much ({status})', said, 'Send less, or use a model with a larger context')
        return ContextOverflow(msg, status=status)
    if isinstance(fault, vendor.ModelQuotaExceededError):
        msg = _line(asked, f'has no credit left for this key ({status})', said)
        return ModelAccessDenied(msg, status=status, retry_after=wait)
    if status in {401, 403}:
        msg = _line(asked, f'refused the key ({status})', said, _key_advice(asked))
        return ModelAccessDenied(msg, status=status)
    if status == 404:
        msg = _line(asked, f'knows no model {asked.name.model!r} ({status})', said, _name_advice(asked))
        return ModelNotFound(msg, status=status)
    if status == 429:
        waiting = f'It asks to wait {wait:g} s' if wait else 'Try again later'
        return RateLimited(
            _line(asked, f'gets too many requests ({status})', said, waiting), status=status, retry_after=wait
        )
    if status == 408 or status >= 500:
        msg = _line(asked, f'cannot answer at the moment ({status})', said, 'Try again later')
        return ModelUnavailable(msg, status=status, retry_after=wait)
    return ModelRefused(_line(asked, f'refused the request ({status})', said), status=status)


def _unreachable(error: Exception, said: str, asked: Asked) -> ModelUnavailable:
    server = f'the server at {shown_url(asked.url)}' if asked.url else asked.place
    if proxy := proxy_of(asked.url):  # it is what was connected to, if anything was
        server = f'the proxy at {shown_url(proxy)}, through which {asked.place} is asked,'
    chain = ' '.join(f'{type(cause).__name__} {cause}' for cause in _causes(error))
    if _UNKNOWN_HOST.search(chain):
        return ModelUnavailable(f'{server} cannot be found: check the address, and the network')
    if _REFUSED.search(chain):
        return ModelUnavailable(f'{server} refused the connection: is it running?')
    if re.search(r'connect ?timeout', chain, re.IGNORECASE):
        return ModelUnavailable(f'{server} cannot be reached: check the address, and the network')
    if re.search(r'timeout|timed out', chain, re.IGNORECASE):
        return too_slow(asked, began=False)
    why = '' if said in {'', 'Connection error.'} else f': {said.rstrip(".")}'
    return ModelUnavailable(
        f'the connection to {server.removeprefix("the server at ").rstrip(",")} broke{why}; try again'
    )


def _is_network(error: Exception) -> bool:
    """Errors of the HTTP libraries and of botocore, which the model layer lets through now and then."""
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


def _line(asked: Asked, what: str, said: str, advice: str = '') -> str:
    detail = f': {said.rstrip(".")}' if said else ''
    return f'{asked.place} {what}{detail}' + (f'. {advice}' if advice else '')


def _key_advice(asked: Asked) -> str:
    variables = ' or '.join(asked.provider.keys)
    if asked.provider.name == 'bedrock':
        return f'Set {variables}, or the AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of your account'
    return f'The key is read from {variables}, or from api_key in the settings of the model'


def _name_advice(asked: Asked) -> str:
    if asked.provider.name == 'ollama':
        return f'Get it with: ollama pull {harmless(asked.name.model)}'
    if asked.provider.own_server:
        return 'Check the name; and the address, which mostly ends in /v1'
    return 'Check the name' if asked.url == asked.provider.url else 'Check the name, and the address'


def _said(error: Exception, asked: Asked) -> str:
    """What the provider says about it, on one line, short, and without the key."""
    body = getattr(error, 'body', None)
    return _tidy((_text_in(body) if body else '') or ('' if _is_status(error) else str(error)), asked)


def _tidy(text: str, asked: Asked) -> str:
    """What others wrote, on one line, short, without the key, and with nothing in it that a terminal obeys."""
    if re.search(r'<!doctype|<html|<body', text, re.IGNORECASE):
        title = re.search(r'<title[^>]*>(.*?)</title>', text, re.IGNORECASE | re.DOTALL)
        text = f'{_WEB_PAGE}{f" named {title[1].strip()!r}" if title else ""}'
    text = harmless(redacted(' '.join(text.split()), asked.key))
    return text if len(text) <= _LONGEST else f'{text[:_LONGEST]}…'


def harmless(text: str) -> str:
    """The same text, with what cannot be printed shown as `\\x1b`."""
    return text if text.isprintable() else ''.join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _is_status(error: Exception) -> bool:
    return hasattr(error, 'status_code')


def redacted(text: str, key: str | None) -> str:
    """The text without the key, and without anything that looks like one."""
    if key and len(key) >= _SHORTEST_KEY:
        text = text.replace(key, '[key]')
    return redact(_TOKENS.sub('[key]', text))


def _text_in(body: object) -> str:
    """The words for people in the body of an error, wherever that provider puts them."""
    if isinstance(body, bytes):
        body = body.decode(errors='replace')
    if isinstance(body, str):
        try:
            inner: object = json.loads(body)
        except ValueError:
            return body
        return body if isinstance(inner, str | int | float | None) else _text_in(inner)
    if isinstance(body, dict):
        fields = cast('dict[str, object]', body)
        for name in ('error', 'message', 'Message', 'detail', 'msg', 'Error', 'errors', 'title'):
            if text := _text_in(fields.get(name)):
                return text
    if isinstance(body, list):
        return '; '.join(filter(None, (_text_in(item) for item in cast('list[object]', body)[:3])))
    return ''
