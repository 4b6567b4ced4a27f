"""`habilis runs files`, `diff RUN`, `restore` and `fork`: the files of a run with checkpoints."""

import asyncio
import json
import subprocess
from pathlib import Path

from habilis.agent import Agent
from habilis.models import ScriptedModel
from tests.cli.chat import code, script
from tests.cli.process import COMMAND, habilis
from tests.cli.runs.making import journal, make, runs
from tests.place import Place

WRITES = (
    code("open('a.txt', 'w').write('one\\n')"),
    code('1 + 1'),
    code("open('a.txt', 'w').write('two\\n')\nopen('b.txt', 'w').write('b')"),
    code('final_answer(7)'),
)


def test_files_of_a_run_are_listed_compared_and_restored(place: Place) -> None:
    space = place.folder / 'space'
    space.mkdir()
    (space / 'mine.txt').write_text('mine')
    run = make(place, *WRITES, options=('--workspace', str(space), '--checkpoints'))
    listed = runs('files', run).stdout.splitlines()
    assert listed[0].split() == ['STEP', 'TIME', 'ID', 'FILES']
    assert [line.split()[0] for line in listed[1:]] == ['0', '1', '3']
    assert listed[1].endswith('1 file at the start')
    assert listed[3].endswith('1 changed, 1 new: a.txt, b.txt')
    rows = json.loads(runs('files', run, '--json').stdout)
    assert rows[2]['changes'] == {'a.txt': 'changed', 'b.txt': 'new'}
    assert '-one\n+two\n' in runs('diff', run, '--at', '3').stdout
    assert runs('diff', run, '--at', '2').stderr == 'habilis: no files were changed\n'
    assert '+two\n' in runs('diff', run).stdout
    assert '-one' not in runs('diff', run).stdout, 'the whole run, not step by step'

    done = runs('restore', run, '--at', '2')
    assert done.returncode == 0, done.stderr
    told = done.stderr.splitlines()
    assert told[0] == f'habilis: 2 files changed in {space}: a.txt, b.txt'
    assert {file.name: file.read_text() for file in space.iterdir()} == {'mine.txt': 'mine', 'a.txt': 'one\n'}
    undo = told[1].partition('habilis runs ')[2].split()
    assert runs(*undo).returncode == 0
    assert (space / 'b.txt').read_text() == 'b'

    script(place.folder, *('x' * 2), code("final_answer(open('a.txt').read())"))
    forked = runs('fork', run, '--at', '3', '-q')
    assert forked.stdout == 'one\n\n', forked.stderr
    assert not (space / 'b.txt').exists()
    other = place.folder / 'other'
    (space / 'a.txt').write_text('work of a person')
    assert 'have changed since the last checkpoint' in runs('fork', run, '--at', '3', '-q').stderr
    other.mkdir()
    assert runs('fork', run, '--at', '3', '-q', '--workspace', str(other)).stdout == 'one\n\n'
    assert (space / 'a.txt').read_text() == 'work of a person'


def test_a_diff_is_a_patch_that_names_binary_files_and_a_run_may_begin_without_checkpoints(
    place: Place,
) -> None:
    space = place.folder / 'space'
    space.mkdir()
    (space / 'a').write_bytes(b'one\r\n')
    replies = (
        code('1'),
        code("open('a', 'wb').write(b'\\x0c\\x1b\\r\\ntwo'); open('b c', 'wb').write(b'\\0' * 2000)"),
        code('final_answer(1)'),
    )

    async def run() -> None:
        store = str(journal(place))
        async with Agent(ScriptedModel(replies[:1]), workspace=space, journal=store) as agent:
            await agent.run('go', run_id='run-1', max_steps=1)
        async with Agent(ScriptedModel(replies[1:]), workspace=space, journal=store, checkpoints=True) as agent:
            await agent.resume('run-1', max_steps=5)

    asyncio.run(run())
    after = (space / 'a').read_bytes()
    patch = place.folder / 'patch'
    shown = runs('diff', 'run-1').stdout
    assert 'binary file b c: 0 -> 2,000 bytes\n' in shown
    assert 'Binary' not in shown
    patch.write_text(shown)
    with Path('/dev/full').open('wb') as full:
        lost = subprocess.run([*COMMAND, 'runs', 'diff', 'run-1'], stdout=full, stderr=subprocess.PIPE, check=False)
    assert lost.stderr == b'habilis: cannot write to stdout: No space left on device\n'
    assert 'run-1 has no checkpoint 0; see: habilis runs files' in runs('restore', 'run-1', '--at', '0').stderr
    assert runs('restore', 'run-1', '--at', '1').returncode == 0
    assert {file.name: file.read_bytes() for file in space.iterdir()} == {'a': b'one\r\n'}
    subprocess.run(['git', 'apply', str(patch)], cwd=space, check=True)
    assert {file.name: file.read_bytes() for file in space.iterdir()} == {'a': after}


def test_a_wrong_step_and_a_run_without_checkpoints_are_refused(place: Place) -> None:
    space = place.folder / 'space'
    space.mkdir()
    run = make(place, *WRITES, options=('--workspace', str(space), '--checkpoints'))
    for at in ('9', 'x', '--output=x'):
        done = runs('restore', run, f'--at={at}')
        assert (done.returncode, done.stderr) == (1, f'habilis: {run} has no step {at}: it has 4 steps\n')
    assert 'has no checkpoint 1234567abc; see: habilis runs files' in runs('restore', run, '--at', '1234567abc').stderr
    assert 'has no checkpoints: make them with habilis run --checkpoints' in runs('files', make(place)).stderr
    assert 'give the folder' in habilis('run', 'x', '--checkpoints').stderr
