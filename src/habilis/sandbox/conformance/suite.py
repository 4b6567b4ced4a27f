"""What every backend must do, as tests. Subclass in your own test suite, name your backend, run pytest:

    class TestMine(SandboxConformance):
        backend = 'mine'

`SandboxConformance` is about behaviour, `IsolationConformance` about what must not be possible. A backend is right
when it passes the first, and safe to give untrusted code to when it passes both.
"""

import asyncio
import time
from pathlib import Path
from typing import ClassVar

import pytest

from habilis.core.errors import SandboxError, SnapshotError
from habilis.sandbox.conformance.files import ATTACKS, make_repository, obeyed_files
from habilis.sandbox.conformance.limits import LimitConformance
from habilis.sandbox.conformance.tools import Suite, ToolConformance
from habilis.sandbox.contract import Cell, Mount, Variable
from habilis.sandbox.session import Sandbox, SyncSandbox


class SandboxConformance(ToolConformance, LimitConformance):
    """How a sandbox behaves."""

    # Values -----------------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ('code', 'value'),
        [
            ('1 + 1', 2),
            ("'a' * 3", 'aaa'),
            ('[1, (2, 3), {4}]', [1, (2, 3), {4}]),
            ('{1: "x", "y": None}', {1: 'x', 'y': None}),
            ("b'\\xff'", b'\xff'),
            ('2 ** 5000', 2**5000),
            ('float("inf")', float('inf')),
            ('0', 0),
            ('False', False),
            ("''", ''),
            ('# only a comment', None),
            ('', None),
            ('x = 3', None),
            ('x = 3; x', 3),
            ('for i in range(3): i', None),
        ],
    )
    def test_the_last_expression_is_the_value(self, code: str, value: object) -> None:
        cell = self.run(code)
        assert cell.error is None
        assert cell.value == value
        assert type(cell.value) is type(value)

    def test_a_value_that_is_not_plain_data_comes_back_as_its_repr(self) -> None:
        cell = self.run('class A:\n    def __repr__(self):\n        return "<an A>"\nA()')
        assert (cell.value, cell.text) == (None, '<an A>')

    def test_none_has_no_text(self) -> None:
        assert self.run('None').text is None

    # State ------------------------------------------------------------------------------------------------------------

    def test_variables_functions_classes_and_imports_live_across_cells(self) -> None:
        with self.create() as sandbox:
            sandbox.run('import math\nx = 41\ndef f(n): return n + x\nclass A: pass')
            assert sandbox.run('f(1), math.floor(1.5), A.__name__').value == (42, 1, 'A')

    def test_a_failed_cell_keeps_what_was_there_and_what_it_did_before_failing(self) -> None:
        with self.create() as sandbox:
            sandbox.run('x = 1')
            sandbox.run('y = 2\n1 / 0')
            assert sandbox.run('x, y').value == (1, 2)

    def test_comprehensions_and_recursion_see_top_level_names(self) -> None:
        code = 'n = 3\ndef fact(k): return 1 if k < 2 else k * fact(k - 1)\n[n * i for i in range(3)], fact(5)'
        assert self.run(code).value == ([0, 3, 6], 120)

    def test_two_sandboxes_share_nothing(self) -> None:
        with self.create() as one, self.create() as two:
            one.run('x = 1')
            assert two.run("'x' in globals()").value is False
            assert one.run('import random; random.random()').value != two.run('import random; random.random()').value

    # Output and errors ------------------------------------------------------------------------------------------------

    def test_stdout_and_stderr_are_apart(self) -> None:
        cell = self.run("import sys\nprint('out')\nprint('err', file=sys.stderr)")
        assert (cell.stdout, cell.stderr) == ('out\n', 'err\n')

    def test_output_arrives_while_the_cell_runs(self) -> None:
        heard: list[str] = []

        def heard_so_far() -> list[str]:
            end = time.monotonic() + 10
            while not heard and time.monotonic() < end:
                time.sleep(0.01)
            return list(heard)

        with self.create(tools=[heard_so_far]) as sandbox:
            code = "print('now')\nfirst = heard_so_far()\nprint('later')\nfirst"
            cell = sandbox.run(code, on_output=lambda stream, text: heard.append(text))
        assert cell.value == ['now\n']
        assert heard == ['now\n', 'later\n']

    def test_an_error_has_its_line_and_only_the_users_frames(self) -> None:
        cell = self.run("def f():\n    raise ValueError('no')\nprint('before')\nf()")
        assert cell.error is not None
        assert (cell.error.kind, cell.error.type, cell.error.message) == ('exception', 'ValueError', 'no')
        assert cell.error.line == 2
        assert "raise ValueError('no')" in cell.error.traceback
        assert 'kernel' not in cell.error.traceback
        assert cell.stdout == 'before\n'

    def test_a_syntax_error_is_named_so(self) -> None:
        cell = self.run('x = 1\ndef (')
        assert cell.error is not None
        assert (cell.error.kind, cell.error.line) == ('syntax', 2)

    def test_warnings_are_shown(self) -> None:
        assert 'careful' in self.run("import warnings\nwarnings.warn('careful')").stderr

    @pytest.mark.parametrize(('code', 'ok'), [('exit()', True), ('import sys; sys.exit(0)', True), ('exit(3)', False)])
    def test_exit_ends_the_cell_only(self, code: str, ok: bool) -> None:
        with self.create() as sandbox:
            sandbox.run('x = 1')
            cell = sandbox.run(f"{code}\nprint('not reached')")
            assert (cell.ok, cell.stdout) == (ok, '')
            assert sandbox.run('x').value == 1

    def test_input_is_answered_or_refused(self) -> None:
        assert self.run("input('name? ')", input=['Ada']).value == 'Ada'
        error = self.run('input()').error
        assert error is not None
        assert error.type == 'EOFError'

    def test_displays(self) -> None:
        code = (
            "class A:\n    def _repr_html_(self): return '<b>x</b>'\n    def _repr_png_(self): return b'\\x89PNG'\nA()"
        )
        assert [(shown.mime, shown.data) for shown in self.run(code).displays] == [
            ('text/html', '<b>x</b>'),
            ('image/png', b'\x89PNG'),
        ]

    # asyncio ----------------------------------------------------------------------------------------------------------

    def test_await_works_at_top_level(self) -> None:
        assert self.run("import asyncio\nawait asyncio.sleep(0.01, 'done')").value == 'done'

    def test_asyncio_run_gather_and_timeouts_work(self) -> None:
        code = (
            'import asyncio\nasync def f(n):\n    await asyncio.sleep(n / 100)\n    return n\n'
            'async def main():\n    try:\n        await asyncio.wait_for(asyncio.sleep(5), 0.05)\n'
            '    except asyncio.TimeoutError:\n        return await asyncio.gather(f(3), f(1), f(2))\n'
            'asyncio.run(main())'
        )
        assert self.run(code).value == [3, 1, 2]

    def test_an_await_that_nothing_can_finish_is_an_error_and_not_a_hang(self) -> None:
        error = self.run('import asyncio\nawait asyncio.get_running_loop().create_future()').error
        assert error is not None
        assert 'deadlock' in error.message

    # Fork, snapshot, variables ----------------------------------------------------------------------------------------

    def test_a_fork_has_the_same_variables_and_is_separate_from_then_on(self) -> None:
        with self.create() as sandbox:
            sandbox.run('x = [1]\nclass A:\n    n = 0\n    def get(self): return x')
            with sandbox.fork() as twin:
                twin.run('x.append(2)')
                assert twin.run('A().get()').value == [1, 2]
                assert sandbox.run('A().get()').value == [1]

    def test_a_snapshot_brings_everything_back_that_it_does_not_name_as_lost(self) -> None:
        with self.create() as sandbox:
            sandbox.run(
                'import math as m\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n'
                'a = b = [P(1)]\ndef outer():\n    n = 0\n    def inner():\n        nonlocal n\n'
                '        n += 1\n        return n\n'
                '    return inner\ncount = outer(); count()\ngen = (i for i in range(3))'
            )
            snapshot = sandbox.snapshot()
        assert snapshot.lost == ('gen',)
        with SyncSandbox.restore(bytes(snapshot), self.backend) as restored:
            restored.run('a.append(P(2))')
            assert restored.run('[p.x for p in b], count(), m.pi > 3').value == ([1, 2], 2, True)

    def test_a_damaged_snapshot_is_refused(self) -> None:
        with self.create() as sandbox:
            sandbox.run('x = 1')
            snapshot = bytearray(sandbox.snapshot())
        snapshot[-1] ^= 1
        with pytest.raises(SnapshotError, match='damaged'):
            SyncSandbox.restore(bytes(snapshot), self.backend)

    def test_variables_go_in_and_come_back(self) -> None:
        with self.create(variables={'data': {'a': [1, 2]}}) as sandbox:
            sandbox.run("data['a'].append(3)")
            sandbox.set_variables({'more': (1,)})
            assert sandbox.get_variables('data', 'more') == {'data': {'a': [1, 2, 3]}, 'more': (1,)}
            with pytest.raises(SandboxError, match='nothing is not defined'):
                sandbox.get_variables('nothing')

    # Files ------------------------------------------------------------------------------------------------------------

    def test_the_workspace_is_the_current_folder_and_changes_are_listed(self, tmp_path: Path) -> None:
        (tmp_path / 'old.txt').write_text('old')
        with self.create(workspace=tmp_path) as sandbox:
            cell = sandbox.run(
                "import os\nos.makedirs('sub')\nopen('sub/new.txt', 'w').write('new')\nopen('old.txt', 'a').write('er')"
            )
            assert cell.error is None
            assert [(file.path, file.change, file.size) for file in cell.files] == [
                ('old.txt', 'changed', 5),
                ('sub/new.txt', 'new', 3),
            ]
            assert sandbox.download('sub/new.txt') == b'new'
            sandbox.upload('in.csv', 'a,b\n')
            assert sandbox.run("open('in.csv').read()").value == 'a,b\n'

    def test_files_move_from_one_sandbox_to_another(self) -> None:
        with self.create(workspace=True) as one, self.create(workspace=True) as two:
            one.run("open('made', 'wb').write(bytes(range(256)))")
            two.upload('got', one.download('made'))
            assert two.run("open('got', 'rb').read()").value == bytes(range(256))

    # Many -------------------------------------------------------------------------------------------------------------

    def test_four_sandboxes_run_at_the_same_time_without_mixing(self) -> None:
        async def main() -> list[Cell]:
            here, all_here = [0], asyncio.Event()

            async def meet() -> None:
                here[0] += 1
                if here[0] == 4:
                    all_here.set()
                await all_here.wait()

            sandboxes = [await Sandbox.create(self.backend, tools=[meet]) for _ in range(4)]
            work = [box.run(f'await meet()\nprint({n})\n{n}') for n, box in enumerate(sandboxes)]
            cells = await asyncio.gather(*work)
            for box in sandboxes:
                await box.close()
            return cells

        cells = asyncio.run(main())
        assert [(cell.value, cell.stdout) for cell in cells] == [(n, f'{n}\n') for n in range(4)]

    def test_tools_can_be_changed_and_variables_described_between_cells(self) -> None:
        def first() -> str:
            return 'first'

        def second() -> str:
            return 'second'

        async def main() -> tuple[Cell, Cell, dict[str, Variable]]:
            async with await Sandbox.create(self.backend, tools=[first]) as sandbox:
                await sandbox.run('x = first()\nmany = [0] * 100')
                both = await sandbox.run('x, second()', tools=[second])
                return both, await sandbox.run('first()'), await sandbox.describe_variables()

        both, gone, variables = asyncio.run(main())
        assert both.value == ('first', 'second')
        assert gone.error is not None
        assert gone.error.type == 'NameError'
        assert variables['x'] == Variable(name='x', type='str', size='5 characters', text="'first'")
        assert variables['many'] == Variable(name='many', type='list', size='100 items')

    def test_cells_of_one_sandbox_run_in_the_order_of_asking(self) -> None:
        async def main() -> object:
            async with await Sandbox.create(self.backend) as sandbox:
                await sandbox.run('seen = []')
                await asyncio.gather(*(sandbox.run(f'seen.append({n})') for n in range(10)))
                return (await sandbox.run('seen')).value

        assert asyncio.run(main()) == list(range(10))


class IsolationConformance(Suite):
    """What must not be possible in a sandbox for untrusted code."""

    has_processes: ClassVar[bool] = False
    """Whether code may start processes inside."""

    has_system: ClassVar[bool] = False
    """Whether a whole system is inside, with files of its own such as `/etc/passwd`."""

    copies_files: ClassVar[bool] = False
    """Whether files are copied to another machine and back: a folder that was moved is a new one here."""

    @pytest.mark.parametrize(
        'path', ['/etc/passwd', '/proc/self/environ', '../../../../etc/passwd', '/root/.ssh', '~/.ssh']
    )
    def test_the_files_of_the_host_are_not_there(self, path: str, tmp_path: Path) -> None:
        cell = self.run(f'import os\nopen(os.path.expanduser({path!r})).read()', workspace=tmp_path)
        if self.has_system and cell.error is None:  # a file of its own
            assert cell.value != Path(path).expanduser().read_text(encoding='utf-8')
            return
        assert cell.error is not None
        assert cell.error.type in ('FileNotFoundError', 'PermissionError', 'OSError', 'IsADirectoryError')

    def test_a_link_out_of_the_workspace_leads_nowhere(self, tmp_path: Path) -> None:
        (tmp_path / 'secret').write_text('secret')
        space = tmp_path / 'space'
        space.mkdir()
        (space / 'link').symlink_to(tmp_path / 'secret')
        cell = self.run("open('link').read()", workspace=space)
        assert cell.error is not None

    def test_a_read_only_workspace_and_mounts_refuse_writes(self, tmp_path: Path) -> None:
        (tmp_path / 'file').write_text('text')
        for code in ("open('/data/file', 'w')", "open('/data/new', 'w')", "import os; os.remove('/data/file')"):
            cell = self.run(code, mounts={'/data': tmp_path})
            assert cell.error is not None
        assert self.run("open('/data/file').read()", mounts={'/data': tmp_path}).value == 'text'
        for read_only in (True, 'only for code'):
            cell = self.run("open('file', 'w')", workspace=tmp_path, read_only=read_only)
            assert cell.error is not None
        assert (tmp_path / 'file').read_text() == 'text'

    def test_each_mount_is_read_only_or_writable_as_it_says(self, tmp_path: Path) -> None:
        for name in ('in', 'out'):
            (tmp_path / name).mkdir()
        mounts = [
            Mount(source=tmp_path / 'in', target='/in'),
            Mount(source=tmp_path / 'out', target='/out', writable=True),
        ]
        cell = self.run("open('/out/made', 'w').write('text')\nopen('/in/made', 'w')", mounts=mounts)
        assert cell.error is not None
        assert cell.error.line == 2
        assert [change.path for change in cell.files] == ['/out/made']
        assert [path.name for path in tmp_path.rglob('made')] == ['made']
        assert (tmp_path / 'out' / 'made').read_text() == 'text'

    def test_the_files_that_other_programs_obey_stay_as_they_are(self, tmp_path: Path) -> None:
        for number, attack in enumerate(ATTACKS):
            space = tmp_path / str(number)
            make_repository(space)
            before = obeyed_files(space)
            cell = self.run(f'import os\n{attack}', workspace=space)
            after = obeyed_files(space)
            assert after.items() <= before.items(), attack
            is_moved = "rename('.git'," in attack
            assert after == before or is_moved, attack  # what was moved may be lost, but is not obeyed
            assert cell.error is not None or 'symlink' in attack, attack  # some backends have none
        cell = self.run("open('.bashrc', 'a').write('x')\nprint(1)", workspace=tmp_path / '0')
        assert cell.stdout == '1\n'
        assert str(cell.error).startswith("PermissionError: '.bashrc' is protected")

    def test_they_stay_so_in_writable_mounts_and_when_variables_are_loaded(self, tmp_path: Path) -> None:
        make_repository(tmp_path)
        before = obeyed_files(tmp_path)
        trap = (
            'class Trap:\n'
            '    def __reduce__(self):\n'
            "        return exec, (\"open('/out/.git/config', 'a').write('x')\",)\n"
            'trap = Trap()'
        )
        mounts = [Mount(source=tmp_path, target='/out', writable=True)]
        with self.create(mounts=mounts) as sandbox:
            assert sandbox.run("open('/out/.git/config', 'a').write('x')").error is not None
            sandbox.run(trap)
            snapshot = bytes(sandbox.snapshot())
        SyncSandbox.restore(snapshot, self.backend, mounts=mounts).close()
        assert obeyed_files(tmp_path) == before

    def test_they_can_be_changed_if_the_user_allows_it_and_other_files_always(self, tmp_path: Path) -> None:
        make_repository(tmp_path)
        cell = self.run("open('.git/config', 'a').write('x')\nopen('.bashrc', 'w')", workspace=tmp_path, protect=False)
        assert cell.error is None
        assert (tmp_path / '.git' / 'config').read_text().endswith('x')
        ordinary = "open('.git/index', 'w')\nopen('.git/refs/x', 'w')\nopen('config', 'w')"
        assert self.run(ordinary, workspace=tmp_path).error is None
        if not self.copies_files:
            assert self.run("import os\nos.rename('sub', 's')", workspace=tmp_path).error is None
            assert (tmp_path / 's' / '.git' / 'config').exists()

    def test_the_environment_of_the_host_stays_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv('SECRET_KEY', 'hunter2')
        cell = self.run('import os\ndict(os.environ)', env={'GIVEN': 'yes'})
        assert cell.text is not None
        assert 'hunter2' not in cell.text
        assert "'GIVEN': 'yes'" in cell.text

    def test_there_is_no_network_unless_granted(self) -> None:
        cell = self.run("import socket\nsocket.create_connection(('127.0.0.1', 80), 2)")
        assert cell.error is not None
        assert cell.error.kind == 'exception'

    def test_no_process_can_be_started_or_it_is_inside_and_ends_with_the_sandbox(self, tmp_path: Path) -> None:
        if not self.has_processes:
            for code in ("os.system('id')", "subprocess.run(['id'])", 'os.fork()'):
                cell = self.run(f'import os, subprocess\n{code}')
                assert cell.error is not None or cell.value != 0  # what os.system returns if it could not start one
            return
        loop = 'while true; do echo . >> beat; sleep 0.05; done'
        start = f"import subprocess\nsubprocess.Popen(['sh', '-c', {loop!r}], start_new_session=True)\n"
        with self.create(workspace=tmp_path) as sandbox:
            assert sandbox.run("import os\nos.system('cat /etc/passwd /root/.ssh/*') != 0").value is True
            assert sandbox.run(f"{start}import time, os\nwhile not os.path.exists('beat'): time.sleep(0.01)").ok
        before = (tmp_path / 'beat').read_bytes()
        time.sleep(0.5)
        assert (tmp_path / 'beat').read_bytes() == before
