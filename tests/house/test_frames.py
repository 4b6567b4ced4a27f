"""Few frames of our code are between two ends of a call: each layer is one to read, and takes time."""

from pathlib import Path

from tests.house.frames import frames_of_a_build, frames_of_a_command, frames_of_a_step, frames_of_a_tool_call


def test_a_command_reaches_the_sandbox_in_sixteen_frames(tmp_path: Path) -> None:
    found = frames_of_a_command(tmp_path)
    assert 0 < len(found) <= 16, '\n'.join(found)


async def test_a_call_of_a_guest_reaches_the_tool_in_eighteen_frames() -> None:
    found = await frames_of_a_tool_call()
    assert 0 < len(found) <= 18, '\n'.join(found)


async def test_a_flow_reaches_its_step_in_six_frames() -> None:
    found = await frames_of_a_step()
    assert 0 < len(found) <= 6, '\n'.join(found)


async def test_a_build_reaches_the_model_in_twenty_five_frames(tmp_path: Path) -> None:
    found = await frames_of_a_build(tmp_path)
    assert 0 < len(found) <= 25, '\n'.join(found)
