"""The OpenAPI document and its page, made from the table of operations."""

import html
import re
from collections.abc import Sequence
from typing import Any, TypeGuard

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from habilis._version import __version__
from habilis.server.models import ErrorModel, ExecuteRequest
from habilis.server.operations import EVENTS, Operation

_ERRORS = {
    '400': 'The request is not valid.',
    '401': 'A key is needed.',
    '404': 'There is none, or it belongs to another caller.',
    '413': 'The body is too large.',
    '429': 'Too many at once; see Retry-After.',
}

_STREAM = (
    'With `stream`: events `stdout` and `stderr` with `{"text": …}` as data, then `result` with the cell, '
    'or `error` with `{"error": …}`.'
)


def document(
    operations: Sequence[Operation[Any]], title: str, *, error: type[BaseModel] = ErrorModel
) -> dict[str, object]:
    """The OpenAPI document of a service that answers with this `error` if it refuses a request."""
    models = {model for operation in operations for model in (operation.request, operation.response)}
    described = [model for model in {*models, error} if _is_model(model)]
    _, schemas = models_json_schema(
        [(model, 'serialization') for model in sorted(described, key=lambda model: model.__name__)],
        ref_template='#/components/schemas/{model}',
    )
    paths: dict[str, dict[str, object]] = {}
    for operation in operations:
        path = operation.path.replace(':path}', '}')
        paths.setdefault(path, {})[operation.method.lower()] = _describe(operation, path, error)
    return {
        'openapi': '3.1.0',
        'info': {'title': title, 'version': __version__},
        'paths': paths,
        'components': {
            'schemas': schemas.get('$defs', {}),
            'securitySchemes': {'key': {'type': 'http', 'scheme': 'bearer'}},
        },
        'security': [{'key': []}],
    }


def page(operations: Sequence[Operation[Any]]) -> str:
    """A page that lists the operations, without anything from other sites."""
    rows = ''.join(
        f'<tr><td><code>{operation.method}</code></td><td><code>{html.escape(operation.path)}</code></td>'
        f'<td>{html.escape(operation.summary)}</td></tr>'
        for operation in operations
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Habilis sandboxes</title>'
        '<style>body{font:16px sans-serif;max-width:60em;margin:2em auto}td{padding:.3em 1em .3em 0}</style>'
        f'<h1>Habilis sandboxes {__version__}</h1><table>{rows}</table>'
        '<p>The <a href="/openapi.json">OpenAPI document</a> has all details.</p></html>'
    )


def _describe(operation: Operation[Any], path: str, error: type[BaseModel]) -> dict[str, object]:
    content = _content(operation.response)
    if operation.request is ExecuteRequest:
        content[EVENTS] = {'schema': {'type': 'string', 'description': _STREAM}}
    described: dict[str, object] = {
        'summary': operation.summary,
        'operationId': operation.handler.__name__,
        'parameters': [
            {'name': name, 'in': 'path', 'required': True, 'schema': {'type': 'string'}}
            for name in re.findall(r'{(\w+)}', path)
        ],
        'responses': {'200': {'description': 'Done.', 'content': content}}
        | {status: {'description': text, 'content': _content(error)} for status, text in _ERRORS.items()},
    }
    if operation.request is not None:
        described['requestBody'] = {'required': True, 'content': _content(operation.request)}
    return described


def _content(model: type[BaseModel] | type[bytes] | None) -> dict[str, object]:
    if _is_model(model):
        return {'application/json': {'schema': {'$ref': f'#/components/schemas/{model.__name__}'}}}
    return {'application/octet-stream': {'schema': {'type': 'string', 'format': 'binary'}}}


def _is_model(model: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(model, type) and issubclass(model, BaseModel)
