"""Scripted replies, and what a scripted model was sent."""

import json
import re
from dataclasses import replace

from habilis.models import FunctionCall, Reply, ScriptedModel

_BLOCK = re.compile(r'```python\n(.*)\n```', re.DOTALL)


def block(code: str) -> str:
    """A reply with code in a fence."""
    return f'```python\n{code}\n```'


def sent(model: ScriptedModel, number: int) -> str:
    """All text of a request."""
    return '\n'.join(message.text for message in model.requests[number].messages)


def as_call(reply: Reply, number: int) -> Reply:
    """The same reply as a model that calls functions gives it: code as a call of `python`."""
    found = _BLOCK.fullmatch(reply.text)
    if found is None or reply.calls:
        return reply
    call = FunctionCall(id=f'call-{number}', name='python', arguments=json.dumps({'code': found[1]}))
    return replace(reply, text='', calls=(call,), finish='calls')
