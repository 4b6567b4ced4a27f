"""Backends are found by name, wherever they were registered."""

import importlib.metadata
from collections.abc import Iterator
from typing import cast

import pytest

from habilis import Sandbox
from habilis.core.errors import BackendNotFound
from habilis.sandbox import backends
from habilis.sandbox.contract import Guest, GuestSpec


class Broken:
    """A backend that lacks something."""

    isolation = 'none'

    def start(self, spec: GuestSpec) -> Guest:
        msg = 'no engine is running: start one'
        raise BackendNotFound(msg)


@pytest.fixture
def broken() -> Iterator[str]:
    backends.register('broken', Broken)
    yield 'broken'
    backends.unregister('broken')


def test_the_default_is_there_and_says_what_isolates() -> None:
    assert 'wasm' in backends.names()
    assert 'WebAssembly' in backends.backend('wasm').isolation
    assert backends.backend('wasm') is backends.backend('wasm')


async def test_a_registered_backend_is_used_until_it_is_taken_away() -> None:
    backends.register('mine', Broken)
    assert 'mine' in backends.names()
    with pytest.raises(BackendNotFound, match='no engine is running: start one'):
        await Sandbox.create('mine')
    backends.unregister('mine')
    with pytest.raises(BackendNotFound, match="no sandbox backend called 'mine'"):
        await Sandbox.create('mine')


class WithImage(Broken):
    """A backend with a setting."""

    def __init__(self, image: str = 'plain') -> None:
        self.image = image


async def test_a_backend_gets_its_own_settings_and_no_others() -> None:
    backends.register('mine', WithImage)
    try:
        made = backends.backend('mine', image='large')
        assert (cast('WithImage', made).image, made) == ('large', backends.backend('mine', image='large'))
        assert made is not backends.backend('mine')
        with pytest.raises(TypeError, match="'mine' has no setting 'url'"):
            await Sandbox.create('mine', url='http://localhost')
        with pytest.raises(TypeError, match='image must be the name of an image, not 3'):
            await Sandbox.create('mine', image=3)  # pyright: ignore[reportArgumentType]
    finally:
        backends.unregister('mine')
    with pytest.raises(TypeError, match="'wasm' has no setting 'image'"):
        await Sandbox.create(image='large')


@pytest.mark.parametrize('name', ['wasm', 'broken'])
def test_a_name_that_is_taken_is_refused(broken: str, name: str) -> None:
    with pytest.raises(ValueError, match='is there already'):
        backends.register(name, Broken)


def test_a_backend_that_cannot_be_imported_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = importlib.metadata.EntryPoint('lame', 'habilis_no_such_package:Backend', backends.GROUP)

    def entry_points(**_: str) -> list[importlib.metadata.EntryPoint]:
        return [entry]

    monkeypatch.setattr(importlib.metadata, 'entry_points', entry_points)
    with pytest.raises(BackendNotFound, match=r"'lame' cannot be loaded: No module named 'habilis_no_such_package'"):
        backends.backend('lame')


def test_the_packages_of_others_are_read_only_for_a_backend_of_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(importlib.metadata, 'entry_points')
    assert backends.settings_of('process') == {'allow_weak'}
    with pytest.raises(AttributeError, match='entry_points'):
        backends.settings_of('lame')
