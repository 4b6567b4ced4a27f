"""What came back, seen from below the SDKs: they do not tell whether a stream was ended or only stopped."""

import json
import re
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any, cast

_KEPT = 4000
_END = re.compile(rb'[\r\n](?:data: ?\[DONE\]|event: ?message_stop)')
"""At the start of a line: in the text of a reply a new line is written as an escape."""

_LONGEST_END = 24


class Heard:
    """One answer; it takes the place of the stream of its response, and sees what is read."""

    def __init__(self, response: Any) -> None:
        self._response = response
        self._stream = response.stream
        self._tail = b'\n'
        self.status: int = response.status_code
        self.start = b''
        """The first bytes, as they came."""

        self.ended = False
        """Whether it holds the mark that ends a stream in its protocol."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self.start += chunk[: _KEPT - len(self.start)]
            seen = self._tail + chunk
            self.ended = self.ended or _END.search(seen) is not None
            self._tail = seen[-_LONGEST_END:]
            yield chunk

    async def aclose(self) -> None:
        """Close the stream inside."""
        await self._stream.aclose()

    async def hang_up(self) -> None:
        """Close the response. One that was read to its end is closed already."""
        await self._response.aclose()

    @property
    def error(self) -> object:
        """What the server complains of, though its status says that all is well; None if it does not."""
        try:
            body: object = json.loads(self.start)
        except (ValueError, RecursionError):
            return None
        return cast('dict[str, object]', body).get('error') if isinstance(body, dict) else None

    @property
    def redirect(self) -> str | None:
        """The address to ask instead of the one that was asked, if it says so."""
        place = str(self._response.headers.get('location', ''))
        if not (300 <= self.status < 400 and place):
            return None
        return str(self._response.request.url.join(place))

    @property
    def path(self) -> str:
        """What was asked for."""
        return str(self._response.request.url.path)


HEARD: ContextVar[list[Heard]] = ContextVar('habilis_heard')
"""Where to note the answers that are being read, to know them, and to be able to hang up: Google's SDK does not when
left."""
