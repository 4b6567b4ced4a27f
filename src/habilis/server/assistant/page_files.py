"""The page: files that `make page` builds, and the headers that keep a browser from doing anything else."""

from importlib.resources import files
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FOLDER = Path(str(files('habilis.server.assistant').joinpath('page')))
HEADERS = {
    'Content-Security-Policy': (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Opener-Policy': 'same-origin',
}


def page_paths() -> frozenset[str]:
    """The paths of the page, which hold nothing of anybody."""
    return frozenset(
        {'/', *(f'/{file.relative_to(FOLDER).as_posix()}' for file in FOLDER.rglob('*') if file.is_file())}
    )


def page_route() -> BaseRoute:
    """Serves the files. The last route: it takes all paths."""
    return Mount('/', StaticFiles(directory=FOLDER, html=True))


class SafeHeaders:
    """Adds the headers to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def send_safely(message: Message) -> None:
            if message['type'] == 'http.response.start':
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_safely)
