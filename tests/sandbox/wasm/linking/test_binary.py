"""Numbers as WebAssembly writes them."""

from hypothesis import given
from hypothesis import strategies as st

from habilis.sandbox.wasm.linking.binary import Reader, encode, encode_signed, number, signed, sized, vector


@given(st.integers(0, 2**64 - 1), st.binary())
def test_a_number_is_read_as_it_was_written_and_nothing_behind_it(value: int, rest: bytes) -> None:
    assert number(encode(value) + rest, 0) == (value, len(encode(value)))


@given(st.integers(-(2**63), 2**63 - 1))
def test_so_is_a_number_with_a_sign(value: int) -> None:
    assert signed(encode_signed(value)) == value


@given(st.lists(st.text()))
def test_a_vector_of_names_is_read_as_it_was_written(names: list[str]) -> None:
    reader = Reader(vector(sized(name.encode()) for name in names))
    assert reader.vector(reader.name) == names
    assert reader.at == len(reader.data)
