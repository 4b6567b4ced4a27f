"""HTTP responses observed below the SDKs, which do not tell whether a stream was complete or interrupted."""

import json
import re
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

from habilis.core.narrowing import fields_in

_MAX_START = 4000
_END = re.compile(rb'[\r\n](?:data: ?\[DONE\]|event: ?message_stop)')
"""End-of-stream marker at the start of a line. In the text of a reply, line breaks are escaped."""

_MAX_END_LENGTH = 24


class ObservedResponse:
    """Replaces the byte stream of a response, and records what is read from it."""

    def __init__(self, response: Any) -> None:
        self._response = response
        self._stream = response.stream
        self._tail = b'\n'
        self.status: int = response.status_code
        self.start = b''
        """The first bytes of the body."""

        self.ended = False
        """Whether the end-of-stream marker was read."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self.start += chunk[: _MAX_START - len(self.start)]
            seen = self._tail + chunk
            self.ended = self.ended or _END.search(seen) is not None
            self._tail = seen[-_MAX_END_LENGTH:]
            yield chunk

    async def aclose(self) -> None:
        """Close the inner stream."""
        await self._stream.aclose()

    async def close(self) -> None:
        """Close the response. Does nothing if it was read to its end."""
        await self._response.aclose()

    @property
    def error(self) -> object:
        """The `error` field of a JSON body, which some servers send with status 200; None if there is none."""
        try:
            body: object = json.loads(self.start)
        except (ValueError, RecursionError):
            return None
        return fields_in(body).get('error')

    @property
    def redirect(self) -> str | None:
        """Target URL of a redirect, or None."""
        location = str(self._response.headers.get('location', ''))
        if not (300 <= self.status < 400 and location):
            return None
        return str(self._response.request.url.join(location))

    @property
    def path(self) -> str:
        """Path of the requested URL."""
        return str(self._response.request.url.path)


OBSERVED: ContextVar[list[ObservedResponse]] = ContextVar('habilis_observed_responses')
"""Collects the responses to the current request, to inspect and close them: Google's SDK leaves them open when its
stream is abandoned."""
