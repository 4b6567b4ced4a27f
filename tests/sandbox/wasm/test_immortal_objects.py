"""What is alive when the component is built is never freed, and its count never written."""

import pytest
import wasmtime

from habilis.core.errors import SandboxError
from habilis.sandbox import Sandbox
from habilis.sandbox.wasm.immortal_objects import IMMORTAL, data_segments


def test_what_was_there_from_the_start_is_immortal_and_what_is_new_is_not() -> None:
    with Sandbox.create_sync() as sandbox:
        sandbox.run('import json, sys\nnew = [1]\ncount = sys.getrefcount')
        assert sandbox.run('min(map(count, [json.dumps, json.__dict__, json.JSONEncoder]))').value == IMMORTAL
        assert sandbox.run('count(new) < 10').value is True


def test_memory_kept_for_bad_times_can_still_be_freed() -> None:
    with Sandbox.create_sync() as sandbox:
        assert sandbox.run('import sys\nsys.getrefcount(display.__self__.reserve) < 10').value is True


def test_the_pieces_of_a_memory_image_are_found_where_they_are() -> None:
    text = '(component (core module (memory 1) (data (i32.const 16) "abcd") (data (i32.const 40000) "efg")))'
    component = bytes(wasmtime.wat2wasm(text))
    assert [
        (segment.address, component[segment.position : segment.position + segment.size])
        for segment in data_segments(component)
    ] == [(16, b'abcd'), (40000, b'efg')]


@pytest.mark.parametrize(
    'text', ['(component)', '(component (core module (memory 1)))', '(component (core module (memory 1) (data "x")))']
)
def test_a_component_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(SandboxError, match='component'):
        data_segments(bytes(wasmtime.wat2wasm(text)))
