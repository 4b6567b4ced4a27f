"""How the hostile tests attack, and what they ask afterwards: is the host still right?"""

from habilis.sandbox.contract import Cell
from habilis.sandbox.session import Sandbox

KERNEL = 'kernel = display.__self__\n'
"""A cell finds the kernel it runs in, through a function it was given."""

HOST = 'import wit_world\nhost = wit_world.host\n'
"""A cell finds the channel to the host, going around the kernel."""


async def attack(sandbox: Sandbox, code: str, *, seconds: float | None = None) -> Cell:
    """Run a hostile cell between two honest ones. The sandbox must answer after it as if it had not been there."""
    await prepare(sandbox)
    cell = await sandbox.run(code, seconds=seconds)
    await assert_right(sandbox)
    return cell


async def breaking_attack(sandbox: Sandbox, code: str) -> Cell:
    """The same for a cell that breaks the kernel for those that come after: one of them may have to say so."""
    await prepare(sandbox)
    cell = await sandbox.run(code)
    for value in (1, 'a', 1, 'a'):
        told = await sandbox.run(f'x = {value!r}\nx')
        assert told.value == value or (told.error is not None and told.error.kind == 'broken'), told
    await assert_right(sandbox)
    return cell


async def prepare(sandbox: Sandbox) -> None:
    """Set the variable that has to survive."""
    cell = await sandbox.run("keep = 'kept'")
    assert cell.ok, cell.error


async def assert_right(sandbox: Sandbox) -> None:
    """It computes, prints nothing of its own, and has its variables."""
    answer = await sandbox.run('6 * 7')
    assert (answer.error, answer.value, answer.text) == (None, 42, '42')
    assert (answer.stdout, answer.stderr, answer.calls, answer.displays) == ('', '', (), ())
    assert (await sandbox.run('keep')).value == 'kept'


def kind_of(cell: Cell) -> str | None:
    """Why the cell failed, if it did."""
    return None if cell.error is None else cell.error.kind
