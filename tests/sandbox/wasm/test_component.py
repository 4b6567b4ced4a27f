"""The memory from which every sandbox starts."""

from typing import cast

from habilis.sandbox import Sandbox

PAGES = """
kept = [[bytes(size) for _ in range(100)] for size in (24, 56, 120)]
[len({id(one) >> 12 for one in made}) for made in kept]
"""


def test_a_new_sandbox_allocates_in_one_place_and_not_in_the_holes_that_the_build_has_left() -> None:
    with Sandbox.create_sync() as sandbox:
        pages = cast('list[int]', sandbox.run(PAGES).value)
    assert max(pages) <= 10, 'each page that is written to has to be copied; 100 small objects fit on 5'
