"""The build of the component."""

from pathlib import Path

import pytest
import wasmtime

from habilis.core.errors import SandboxError
from habilis.sandbox.wasm.build import TESTED, linked

ROOT = Path(__file__).parents[3]


def test_the_version_of_the_builder_that_the_linker_knows_is_the_pinned_one() -> None:
    assert f'componentize-py=={TESTED}' in (ROOT / 'constraints.txt').read_text().splitlines()


def test_a_component_that_cannot_be_linked_names_the_version_that_can() -> None:
    strange = '(component (core module $a (func $f) (start $f)) (core instance (instantiate $a)))'
    with pytest.raises(SandboxError, match=r'section of kind 8.* pip install componentize-py==\d'):
        linked(bytes(wasmtime.wat2wasm(strange)))
