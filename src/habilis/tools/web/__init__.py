"""The web: search and fetch, through the host. Needs `habilis[web]`."""

from habilis.tools.web.contract import PageFailure, PageSource, SearchResult, WebPage
from habilis.tools.web.web import Web
from habilis.tools.web.web_toolset import WebToolset

__all__ = ['PageFailure', 'PageSource', 'SearchResult', 'Web', 'WebPage', 'WebToolset']
