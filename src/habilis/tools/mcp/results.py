"""Results of MCP servers as values for code: structured data, text, and pictures, which are displayed."""

import base64
import binascii
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from habilis.core.errors import ToolCallError
from habilis.core.narrowing import is_mapping
from habilis.sandbox.contract import Display
from habilis.tools.logs import display
from habilis.tools.mcp.descriptions import clean

if TYPE_CHECKING:
    from mcp_types import CallToolResult, GetPromptResult, ReadResourceResult


def value_of(result: 'CallToolResult', *, is_structured: bool, unwraps: bool) -> object:
    """The structured content, where the tool declares one; else the text. Raises `ToolCallError` for an error."""
    text = _text(result.content)
    if result.is_error:
        raise ToolCallError(clean(text) or 'the tool failed, and did not say why')
    if is_structured:
        data: object = result.structured_content
        return data.get('result') if unwraps and is_mapping(data) else data
    if not text and result.structured_content is not None:
        return json.dumps(result.structured_content)
    return text


def text_of_resource(result: 'ReadResourceResult') -> str:
    """The text of a resource; pictures in it are displayed."""
    return _text(result.contents)


def text_of_prompt(result: 'GetPromptResult') -> str:
    """The messages of a prompt, each with its role."""
    return '\n\n'.join(f'{message.role}: {_text([message.content])}' for message in result.messages)


def _text(content: 'Iterable[object]') -> str:
    return '\n'.join(filter(None, map(_one, content)))


def _one(block: object) -> str:
    """A part of a result as text. It is recognized by what it has, as resources have no type."""
    inner = getattr(block, 'resource', None)
    if inner is not None:
        return _one(inner)
    text = getattr(block, 'text', None)
    if isinstance(text, str):
        return text
    data = getattr(block, 'data', None) or getattr(block, 'blob', None)
    mime = str(getattr(block, 'mime_type', None) or 'application/octet-stream')
    if isinstance(data, str):
        return _binary(mime, data)
    uri = getattr(block, 'uri', None)
    return f'{getattr(block, "name", "")} <{uri}>'.strip() if uri is not None else ''


def _binary(mime: str, data: str) -> str:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return f'({mime} that cannot be read)'
    if not mime.startswith('image/'):
        return f'({mime}, {len(content):,} bytes)'
    display(Display(mime=mime, data=content))
    return f'(a picture, {mime}, which is displayed)'
