"""What the tests of the agent's commands say to it: scripts in files, and a server that speaks the chat protocol."""

import json
from pathlib import Path

from tests.models.protocol_server import Answer, server_sent_event


def code(text: str) -> str:
    """A reply with code in a fence."""
    return f'```python\n{text}\n```'


def script(folder: Path, *replies: str, name: str = 'script') -> str:
    """A file of replies, as the name of a model."""
    file = folder / f'{name}.jsonl'
    file.write_text('\n'.join(map(json.dumps, replies)), encoding='utf-8')
    return f'scripted:{file}'


def streamed(*pieces: str, silent_after: int | None = None, cut: bool = False, tokens: int = 16) -> Answer:
    """A streamed reply, piece by piece; perhaps with nothing more after some of them, or no connection any more."""
    events = [_chunk({'role': 'assistant', 'content': piece}) for piece in pieces]
    events.append(_chunk({}, finish='stop', tokens=tokens))
    done = server_sent_event({'data': '[DONE]'})
    return Answer(
        headers={'content-type': 'text/event-stream'}, chunks=(*events, done), silent_after=silent_after, cut=cut
    )


def _chunk(delta: dict[str, str], *, finish: str | None = None, tokens: int = 0) -> bytes:
    usage = {'prompt_tokens': tokens - 5, 'completion_tokens': 5, 'total_tokens': tokens} if tokens else None
    return server_sent_event(
        {
            'data': {
                'id': 'chat-1',
                'object': 'chat.completion.chunk',
                'created': 1,
                'model': 'tiny',
                'choices': [{'index': 0, 'delta': delta, 'finish_reason': finish}],
                'usage': usage,
            }
        }
    )
