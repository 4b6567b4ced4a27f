"""Libraries that are connected when an instance is created, and the one module that is made of them."""

from collections.abc import Iterator

import pytest
import wasmtime
from hypothesis import given
from hypothesis import strategies as st
from wasmtime import component

from habilis.core.folders import cache_folder
from habilis.sandbox.wasm.build import BUNDLED, builder_key, source_key
from habilis.sandbox.wasm.cache import bundled_key, compiled_component
from habilis.sandbox.wasm.linking.binary import HEADER, Unlinkable, sections
from habilis.sandbox.wasm.linking.component import CORE_MODULE, parse_component
from habilis.sandbox.wasm.linking.core_module import FUNCTION, GLOBAL, CoreModule, parse_module
from habilis.sandbox.wasm.linking.instructions import CodeReference, split
from habilis.sandbox.wasm.linking.linker import link

LIBRARIES = """
(component
  (import "offset" (func $offset (result u32)))
  (core func $offset (canon lower (func $offset)))
  (core module $main
    (type $unary (func (param i32) (result i32)))
    (memory (export "memory") 1)
    (table (export "table") 4 funcref)
    (global (export "base") i32 (i32.const 1))
    (global (export "address") (mut i32) (i32.const 16))
    (global (export "count") (mut i32) (i32.const -3))
    (func (export "late") (type $unary) local.get 0 i32.const 2 call_indirect (type $unary))
    (func (export "swapped") (param i32 i32) (result i32)
      local.get 1 local.get 0 i32.const 3 call_indirect (param i32 i32) (result i32))
    (data (i32.const 16) "\\07\\00\\00\\00"))
  (core instance $main (instantiate $main))
  (core module $library
    (import "env" "memory" (memory 1))
    (import "env" "table" (table 2 funcref))
    (import "env" "base" (global $base i32))
    (import "env" "count" (global $count (mut i32)))
    (import "got" "address" (global $address (mut i32)))
    (import "env" "late" (func $late (param i32) (result i32)))
    (import "env" "swapped" (func $swapped (param i32 i32) (result i32)))
    (import "outer" "offset" (func $offset (result i32)))
    (global $next i32 (i32.add (global.get $base) (i32.const 1)))
    (elem (global.get $next) func $double $minus)
    (func $double (param i32) (result i32) local.get 0 i32.const 2 i32.mul)
    (func $minus (param i32 i32) (result i32) local.get 0 local.get 1 i32.sub)
    (func $unused (result i32) unreachable)
    (func (export "run") (param $n i32) (result i32) (local $sum i32)
      (global.set $count (i32.add (global.get $count) (i32.const 1)))
      (block $end (loop $again
        (br_table 1 0 1 (i32.eqz (local.get $n)))))
      (local.set $sum (i32.add (call $late (local.get $n)) (call $swapped (i32.const 1) (i32.const 10))))
      (local.set $sum (i32.add (local.get $sum) (i32.load (global.get $address))))
      (local.set $sum (i32.add (local.get $sum) (i32.mul (global.get $count) (i32.const 1000))))
      (i32.add (local.get $sum) (call $offset))))
  (core instance $got (export "address" (global $main "address")))
  (core instance $outer (export "offset" (func $offset)))
  (alias core export $main "memory" (core memory $memory))
  (core instance $library (instantiate $library
    (with "env" (instance
      (export "memory" (memory $memory)) (export "table" (table $main "table")) (export "base" (global $main "base"))
      (export "count" (global $main "count")) (export "late" (func $main "late"))
      (export "swapped" (func $main "swapped"))))
    (with "got" (instance $got))
    (with "outer" (instance $outer))))
  (alias core export $library "run" (core func $run))
  (func (export "run") (param "n" u32) (result s32) (canon lift (core func $run))))
"""
"""A program and a library that call each other, through a table, addresses and a counter that they share."""


def modules(data: bytes) -> list[CoreModule]:
    """The core modules of a component."""
    found = (part for part in sections(data, HEADER, len(data)) if part.kind == CORE_MODULE)
    return [parse_module(data[part.start : part.end]) for part in found]


def results(data: bytes, numbers: list[int]) -> Iterator[int]:
    """The results of the function `run` of a component."""
    engine = wasmtime.Engine()
    code, linker, store = component.Component(engine, data), component.Linker(engine), wasmtime.Store(engine)
    with linker.root() as root:
        root.add_func('offset', _offset)
    run = linker.instantiate(store, code).get_func(store, 'run')
    assert run is not None
    for each in numbers:
        yield run(store, each)
        run.post_return(store)


def _offset(_store: object) -> int:
    return 500


def test_linked_libraries_compute_what_they_computed_before() -> None:
    before = bytes(wasmtime.wat2wasm(LIBRARIES))
    expected = list(results(before, [1, 5, 70]))
    assert expected == [2 - 1000 * 2 + 9 + 7 + 500, 10 - 1000 + 9 + 7 + 500, 140 + 9 + 7 + 500]
    assert list(results(link(before), [1, 5, 70])) == expected


def test_they_are_one_module_without_what_is_known_when_it_is_built() -> None:
    (module,) = modules(link(bytes(wasmtime.wat2wasm(LIBRARIES))))
    assert [each.name for each in module.imports[FUNCTION]] == ['0'], 'the function of the component'
    assert len(module.globals) == 1, 'the counter; the others are constants'
    assert len(module.bodies) == 4, 'without what is not used, and what only passes its arguments on'
    assert not module.imports[GLOBAL]


def test_the_built_component_has_one_module_beside_the_two_that_pass_functions_on() -> None:
    compiled_component()
    built = BUNDLED if bundled_key() else cache_folder() / 'wasm' / f'{source_key()}-{builder_key()}.wasm'
    linked, *others = modules(built.read_bytes())
    assert len(linked.bodies) > 10_000
    assert len(others) == 2
    assert max(len(each.bodies) for each in others) < 100
    assert all(each.offset[0] == 0x41 for each in linked.elements), 'only then wasmtime fills the table as it is used'


DOUBLE = 'local.get 0 i32.const 2 i32.mul'
REFUSED = [
    ({DOUBLE: 'v128.const i64x2 0 0 drop local.get 0'}, 'instruction fd0c'),
    ({DOUBLE: 'ref.func $double drop local.get 0'}, 'instruction d2'),
    ({'(func $unused (result i32) unreachable)': '(func $unused) (start $unused)'}, 'section of kind 8'),
    ({'func $double $minus)': 'func $double $minus) (elem func $double)'}, 'elements of kind 1'),
    (
        {
            '(global $next i32': '(global $wide (mut i64) (i64.const 1)) (global $next i32',
            DOUBLE: 'i64.const 2 global.set $wide local.get 0',
        },
        '32 bits',
    ),
    ({'(instantiate $main))': '(instantiate $main)) (core instance $twin (instantiate $main))'}, 'several instances'),
    ({'(memory (export "memory") 1)': '(memory (export "memory") 1) (memory 1)'}, 'twice'),
]


@pytest.mark.parametrize(('changes', 'reason'), REFUSED)
def test_what_componentize_py_does_not_use_is_refused(changes: dict[str, str], reason: str) -> None:
    text = LIBRARIES
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    with pytest.raises(Unlinkable, match=reason):
        link(bytes(wasmtime.wat2wasm(text)))


@given(st.integers(0, 2**32 - 1), st.binary(min_size=8, max_size=8))
def test_constants_that_look_like_instructions_are_not_taken_for_them(index: int, constant: bytes) -> None:
    number = f'{int.from_bytes(constant, "little")}'
    constants = f'i64.const {number} drop i32.const {index} drop f64.const {number} drop'
    text = f'(module (func $f {constants} call $f))'
    (body,) = parse_module(bytes(wasmtime.wat2wasm(text))).bodies
    assert [each for each in split(body) if isinstance(each, CodeReference)] == [CodeReference(0x10, 0)]


def test_a_component_stays_as_it_is_where_nothing_is_linked() -> None:
    assert parse_component(bytes(wasmtime.wat2wasm('(component)'))).definitions == []
