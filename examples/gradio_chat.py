"""A chat in Gradio: words, code and output as they come, files, and variables that stay.

pip install gradio
python examples/gradio_chat.py [MODEL]
"""

import sys
from collections.abc import AsyncGenerator
from typing import TypedDict

import gradio as gr

from habilis.agent.events import OutputEvent, TextEvent
from habilis.assistant import Session, TurnEnded
from habilis.memory import Memory
from habilis.models import File

model = sys.argv[1] if len(sys.argv) > 1 else None
memory = Memory()
sessions: dict[str, Session] = {}


class Sent(TypedDict):
    """What the box of Gradio sends."""

    text: str
    files: list[str]


async def reply(message: Sent, _history: object, request: gr.Request) -> AsyncGenerator[str, None]:
    """Take a turn, and yield what has been said so far. Each browser tab is a conversation."""
    key = request.session_hash or ''
    session = sessions.setdefault(key, Session(model, memory=memory))
    said = ''
    async for event in session.stream(message['text'], files=[File(path) for path in message['files']]):
        if isinstance(event, TextEvent):
            said += event.text
        elif isinstance(event, OutputEvent):
            said += f'\n```text\n{event.text.rstrip()}\n```\n'
        elif isinstance(event, TurnEnded) and event.error is not None:
            raise gr.Error(str(event.error))
        yield said


async def close(request: gr.Request) -> None:
    """Free the sandbox of a tab that was closed. Its conversation stays in the journal."""
    session = sessions.pop(request.session_hash or '', None)
    if session is not None:
        await session.close()


with gr.Blocks(title='Habilis') as page:
    gr.ChatInterface(reply, multimodal=True, title='Habilis')
    page.unload(close)

if __name__ == '__main__':
    page.launch()
