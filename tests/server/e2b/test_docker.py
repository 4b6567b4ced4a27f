# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
"""Sandboxes of E2B's SDK in containers: another backend, and an image without bash."""

from e2b_code_interpreter import Sandbox

from habilis.server.settings import ServiceSettings
from tests.sandbox.docker import engine
from tests.server.e2b.serving import Server
from tests.server.running import running


def test_commands_files_and_code_work_in_a_container() -> None:
    with (
        engine.registered(),
        running(ServiceSettings(port=0, e2b=True, backend=engine.BACKEND)) as url,
        Sandbox.create(**Server(url).options()) as sandbox,
    ):
        sandbox.files.write('a.txt', 'text')
        assert sandbox.commands.run('read line < a.txt; echo "$line"; exit 0').stdout == 'text\n'
        assert sandbox.run_code("open('a.txt').read()").text == "'text'"
