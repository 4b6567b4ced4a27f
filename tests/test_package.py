"""The package root: lazy, and complete."""

import importlib.metadata

import pytest

import habilis


@pytest.mark.parametrize('name', habilis.__all__)
def test_every_name_of_the_root_can_be_had(name: str) -> None:
    assert getattr(habilis, name) is getattr(habilis, name)


def test_the_root_lists_its_lazy_names() -> None:
    assert set(habilis.__all__) <= set(dir(habilis))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="habilis has no attribute 'Sandpit'"):
        _ = getattr(habilis, 'Sandpit')  # noqa: B009 - the type checker would refuse the plain form


def test_the_version_is_that_of_the_installed_package() -> None:
    assert habilis.__version__ == importlib.metadata.version('habilis')
