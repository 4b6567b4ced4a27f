"""Private addresses are refused, however they are written and whenever a name begins to mean one."""

import socket
from pathlib import Path

import pytest

from habilis.core.settings import load_settings
from habilis.sandbox.network import is_public
from habilis.tools.web.contract import PageFailure, WebPage
from habilis.tools.web.downloads import DownloadLimits
from habilis.tools.web.web import Web
from tests.cases import each_case
from tests.place import Place
from tests.tools.web.loopback import LoopbackWeb, redirect

PRIVATE = """
    127.0.0.1 127.1.2.3 0.0.0.0 10.0.0.1 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 192.0.0.192 224.0.0.1
    240.0.0.1 255.255.255.255 ::1 :: ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::127.0.0.1 fe80::1 fe80::1%eth0 fc00::1 fd00::1
    fec0::1 ff02::1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 2002:7f00:1:: 2002:a00:1:: 2001:0:7f00:1::
    2001:db8::1 100::1
""".split()


@each_case('address', PRIVATE)
def test_an_address_is_not_public(address: str) -> None:
    assert not is_public(address)


@each_case('address', '8.8.8.8 1.1.1.1 2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::'.split())
def test_an_address_is_public(address: str) -> None:
    assert is_public(address)


FORMS = [
    '127.0.0.1',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '127.1',
    '[::1]',
    '[::ffff:127.0.0.1]',
    'localhost',
    '0',
]


async def test_loopback_is_refused_in_every_form_and_nothing_is_asked(site: LoopbackWeb, tmp_path: Path) -> None:
    port = site.url.rpartition(':')[2]
    async with Web(load_settings(tmp_path), cache=tmp_path) as web:
        found = await web.fetch([f'http://{form}:{port}/rivers/kelda.html' for form in FORMS])
    assert all(isinstance(each, PageFailure) for each in found), found
    assert site.requests == []


async def test_a_redirect_to_a_private_address_is_refused(site: LoopbackWeb, tmp_path: Path) -> None:
    host, port = 'localhost', site.url.rpartition(':')[2]
    site.pages['/away.html'] = redirect(f'http://127.0.0.1:{port}/rivers/kelda.html')
    async with Web(load_settings(tmp_path, web_hosts=host), cache=tmp_path) as web:
        (found,) = await web.fetch([f'http://{host}:{port}/away.html'])
    assert isinstance(found, PageFailure)
    assert '127.0.0.1 is not a public address' in found.reason
    assert site.asked('/rivers/kelda.html') == []


async def test_a_name_that_means_another_address_a_moment_later_is_of_no_use(
    site: LoopbackWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer of this name server is public, and each later one is private."""
    port = int(site.url.rpartition(':')[2])
    real, asked = socket.getaddrinfo, list[str]()

    def rebinding(host: object, *args: object, **kwargs: object) -> object:
        if host not in ('rebind.example', b'rebind.example'):
            return real(host, *args, **kwargs)  # pyright: ignore[reportArgumentType]
        asked.append('192.0.2.1' if not asked else '127.0.0.1')
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, '', (asked[-1], port))]

    monkeypatch.setattr(socket, 'getaddrinfo', rebinding)
    limits = DownloadLimits(seconds=1.0, pace=0)
    settings = load_settings(tmp_path, web_hosts='192.0.2.1')  # stands for a public address that does not answer
    async with Web(settings, limits=limits, cache=tmp_path) as web:
        for _ in range(2):
            (found,) = await web.fetch([f'http://rebind.example:{port}/rivers/kelda.html'])
            assert isinstance(found, PageFailure)
    assert asked == ['192.0.2.1', '127.0.0.1']
    assert site.requests == []


async def test_a_project_cannot_allow_private_addresses(
    site: LoopbackWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, monkeypatch)
    for allow, kind in ((place.project, PageFailure), (place.user, WebPage)):
        allow('web_hosts = ["127.0.0.1"]\n')
        async with Web(load_settings(), cache=tmp_path / 'cache') as web:
            (found,) = await web.fetch([site.address('/rivers/kelda.html')])
        assert isinstance(found, kind)
        place.project('')
